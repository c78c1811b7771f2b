// The conversation. It lives in this page alone: the server gets all of it with each message.

const chat = {messages: [], running: null};

function showTrouble(text) {
  setText(byId('trouble'), text);
  byId('trouble').hidden = text === '';
}

// A message in the log; `body` is where its text goes.
function addMessage(role, text) {
  byId('empty').hidden = true;
  const body = make('div', {class: 'text'}, text);
  const article = make('article', {class: `message ${role}`},
                       make('h3', {}, role === 'user' ? 'You' : 'Model'), body);
  byId('log').append(article);
  return {article, body};
}

// The log follows what comes, unless somebody scrolled up to read.
function followLog(change) {
  const log = byId('log');
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  change();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

function requestOf(messages) {
  const system = byId('system').value.trim();
  const body = {
    messages: system ? [{role: 'system', content: system}, ...messages] : messages,
    stream: true,
    stream_options: {include_usage: true},
  };
  const temperature = byId('temperature').valueAsNumber;
  if (Number.isFinite(temperature)) body.temperature = temperature;
  const most = byId('most').valueAsNumber;
  if (Number.isFinite(most)) body.max_tokens = Math.trunc(most);
  return body;
}

// What a reply says so far, shown while it comes.
class Reply {
  constructor() {
    const {article, body} = addMessage('model', '');
    this.article = article;
    this.body = body;
    this.thoughts = null;
    this.content = '';
    this.reasoning = '';
    this.tokens = 0;
    this.firstAt = 0;
    this.end = '';
    article.setAttribute('aria-busy', 'true');
  }

  take(event) {
    if (event.usage) this.tokens = event.usage.completion_tokens;
    for (const choice of event.choices) {
      const delta = choice.delta || {};
      if (delta.content) this.addContent(delta.content);
      if (delta.reasoning_content) this.addThoughts(delta.reasoning_content);
      if (choice.finish_reason) this.end = choice.finish_reason;
    }
  }

  addContent(text) {
    this.firstAt ||= performance.now();
    this.content += text;
    followLog(() => this.body.append(text));
  }

  addThoughts(text) {
    this.firstAt ||= performance.now();
    if (!this.thoughts) {
      this.thoughts = make('div', {class: 'text'});
      this.article.insertBefore(make('details', {class: 'thoughts'}, make('summary', {}, 'Thoughts'), this.thoughts), this.body);
    }
    this.reasoning += text;
    followLog(() => this.thoughts.append(text));
  }

  // `note`: why it ended, for people.
  finish(note) {
    this.article.setAttribute('aria-busy', 'false');
    const words = [];
    const seconds = (performance.now() - this.firstAt) / 1000;
    if (this.tokens > 1 && this.firstAt) {
      words.push(counted(this.tokens, 'token'), `${rateText((this.tokens - 1) / Math.max(seconds, 0.001))} tokens/s`);
    }
    if (note) words.push(note);
    if (words.length > 0) followLog(() => this.article.append(make('p', {class: 'soft note'}, words.join(', '))));
  }
}

function setRunning(controller) {
  chat.running = controller;
  byId('send').disabled = controller !== null;
  byId('stop').disabled = controller === null;
}

async function send() {
  const text = byId('message').value;
  if (chat.running || text.trim() === '') return;
  showTrouble('');
  const controller = new AbortController();
  setRunning(controller);
  byId('message').value = '';
  chat.messages.push({role: 'user', content: text});
  const {article} = addMessage('user', text);
  const reply = new Reply();
  byId('log').scrollTop = byId('log').scrollHeight;
  let note = '';
  let failed = null;
  try {
    const complete = await postStream('/v1/chat/completions', requestOf(chat.messages), controller.signal,
                                      (event) => reply.take(event));
    if (!complete) throw new Error('the connection ended before the answer did');
    if (reply.end === 'length') note = 'cut off at the limit';
  } catch (error) {
    if (controller.signal.aborted) note = 'stopped';
    else failed = error;
  }
  // A new chat may have begun in the meantime.
  if (chat.running === controller) finishTurn(reply, note, failed, article, text);
}

function finishTurn(reply, note, failed, article, text) {
  reply.finish(failed ? 'not finished' : note);
  if (reply.content) {
    chat.messages.push({role: 'assistant', content: reply.content});
  } else if (failed || note === 'stopped') {
    // Nothing was said: the message is there to be sent again.
    chat.messages.pop();
    article.remove();
    reply.article.remove();
    byId('message').value ||= text;
    byId('empty').hidden = chat.messages.length > 0;
  }
  const inStop = document.activeElement === byId('stop');
  setRunning(null);
  if (inStop || document.activeElement === document.body) byId('message').focus();
  if (failed && failed.status !== 401) showTrouble(failed.message || 'the server does not answer');
}

function stopReply() {
  if (chat.running) chat.running.abort();
}

function resetChat() {
  const running = chat.running;
  setRunning(null);
  if (running) running.abort();
  chat.messages = [];
  for (const article of document.querySelectorAll('#log article')) article.remove();
  byId('empty').hidden = false;
  showTrouble('');
  byId('message').focus();
}

function startChat() {
  byId('compose').addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  byId('message').addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') stopReply();
  });
  byId('stop').addEventListener('click', stopReply);
  byId('reset').addEventListener('click', resetChat);
}
