// Requests to the server that the page came from, with its key where it wants one.

const KEY_NAME = 'weft-api-key';

class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function headers(more = {}) {
  const key = sessionStorage.getItem(KEY_NAME);
  return key ? {...more, Authorization: `Bearer ${key}`} : more;
}

async function failure(response) {
  let message = `the server says ${response.status}`;
  try {
    const body = await response.json();
    if (body.error && typeof body.error.message === 'string') message = body.error.message;
  } catch {
    // What is no JSON says nothing that people should read.
  }
  if (response.status === 401) askForKey();
  return new ApiError(response.status, message);
}

async function getJson(path) {
  const response = await fetch(path, {headers: headers(), cache: 'no-store'});
  if (!response.ok) throw await failure(response);
  return response.json();
}

// Calls `take` with each event of a streamed reply; true if the stream came to its end.
async function postStream(path, body, signal, take) {
  const response = await fetch(path, {
    method: 'POST',
    headers: headers({'Content-Type': 'application/json'}),
    body: JSON.stringify(body),
    signal,
  });
  if (!response.ok) throw await failure(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return false;
    const lines = (waiting + value).split('\n');
    waiting = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('data:')) continue;
      const data = line.slice(5).trim();
      if (data === '[DONE]') return true;
      const event = JSON.parse(data);
      if (event.error) throw new ApiError(0, event.error.message);
      take(event);
    }
  }
}

function askForKey() {
  const form = byId('key-form');
  const refused = sessionStorage.getItem(KEY_NAME) !== null;
  setText(byId('key-error'), refused ? 'The server does not know this key.' : '');
  sessionStorage.removeItem(KEY_NAME);
  if (!form.hidden) return;
  form.hidden = false;
  byId('key').focus();
}

function listenForKey(whenGiven) {
  byId('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY_NAME, byId('key').value.trim());
    byId('key').value = '';
    byId('key-form').hidden = true;
    byId('message').focus();
    whenGiven();
  });
}
