// The state of the page and what changes it.

const PASS_WORDS = {
  'assign-pinned': 'What is fixed: pins, memory that is bound, the place of weights, and work that a device wants although its weight lies in host memory.',
  'expand': 'Devices spread from what they have to neighbouring nodes; the node of a processor stops the others.',
  'upgrade-or-guess': 'What is left goes where most of its sources can be read; a better device with the same memory takes over.',
  'inherit': 'Views stay with their tensors, free leafs go to their readers.',
  'cut': 'The nodes in order are cut into runs on one device, and what each must copy is listed.',
};
const PHASES = ['prefill', 'decode'];
const PLAY_MS = 1400;

const given = data.toggles.map((toggle) => toggle.given);
const state = { phase: 0, choices: given.slice(), step: -1, node: -1, split: -1, allSplits: false, timer: 0 };
const grid = new Grid(byId('layers'), byId('tip'), (node) => {
  state.node = node;
  show();
});

const variant = () => variantOf(state.choices);
const view = () => unpack(planOf(variant(), state.phase));
const passCount = () => planOf(data.variants.find((one) => one.phases), 0).passes.length;

// A group of radio buttons.
function addChoices(name, choices, at, preset, choose) {
  const inputs = choices.map((choice, index) => {
    const input = make('input', { type: 'radio', name, value: index, onchange: () => choose(index) });
    input.checked = index === at;
    return make('label', { class: index === preset ? 'given' : false, title: index === preset ? 'as given' : false }, input,
                choice);
  });
  byId('controls').append(make('fieldset', {}, make('legend', {}, name), make('div', { class: 'choices' }, ...inputs)));
}

function check(name, index) {
  const input = document.querySelector(`#controls input[name="${CSS.escape(name)}"][value="${index}"]`);
  if (input) input.checked = true;
}

function setPhase(phase) {
  state.phase = phase;
  state.split = -1;
  check('phase', phase);
  rebuild();
}

function setStep(step) {
  state.step = Math.max(0, Math.min(passCount(), step));
  show();
}

function pause() {
  window.clearInterval(state.timer);
  state.timer = 0;
  byId('play').textContent = 'Play';
}

function playOrPause() {
  if (state.timer) {
    pause();
    return;
  }
  if (state.step >= passCount()) setStep(0);
  byId('play').textContent = 'Pause';
  state.timer = window.setInterval(() => {
    setStep(state.step + 1);
    if (state.step >= passCount()) pause();
  }, PLAY_MS);
}

// Another plan: rows anew.
function rebuild() {
  const refused = variant().refused;
  byId('refused').hidden = refused === undefined;
  byId('main').hidden = refused !== undefined;
  if (refused !== undefined) {
    byId('refused').textContent = `With these choices there is no plan: ${refused}`;
    byId('steps').replaceChildren();
    byId('words').textContent = '';
    return;
  }
  grid.build(view());
  show();
}

function showSteps() {
  const passes = view().plan.passes;
  const item = (index, name, amount) => make('li', {}, make('button', {
    type: 'button',
    'aria-current': index === state.step ? 'step' : false,
    onclick: () => { pause(); setStep(index); },
  }, name, make('span', { class: 'amount' }, amount)));
  byId('steps').replaceChildren(item(0, 'start', ''), ...passes.map((pass, index) => {
    const last = index === passes.length - 1;
    return item(index + 1, pass.name, last ? counted(view().splits.length, 'split') : String(pass.changes.length / 2));
  }));
  byId('previous').disabled = state.step === 0;
  byId('next').disabled = state.step === passes.length;
  if (state.step === 0) {
    byId('words').textContent = 'Before the first pass no node has a device.';
    return;
  }
  const pass = passes[state.step - 1];
  const done = `${counted(pass.changes.length / 2, 'node')} and ${counted(pass.others, 'leaf or view')} placed.`
    .replace('leaf or views', 'leafs and views');
  byId('words').textContent = `${state.step}. ${pass.name}: ${PASS_WORDS[pass.name] || ''} ${state.step < passes.length ? done : ''}`;
}

function pointAt(split) {
  state.split = state.split === split ? -1 : split;
  const rows = view().rows;
  const begin = view().splits[split].begin;
  const row = rows.find((one) => one.members.some((member) => member.begin <= begin && begin < member.end));
  if (!grid.cells.has(begin)) {
    grid.expanded.add(row.members[0].layer);
    grid.build(view());
  }
  show();
  grid.cells.get(begin).scrollIntoView({ block: 'nearest' });
}

// Everything at the state's step.
function show() {
  const now = view();
  if (state.node >= now.count) state.node = -1;
  const asGiven = variantOf(given);
  const other = asGiven.phases && asGiven !== variant() ? unpack(planOf(asGiven, state.phase)) : null;
  showSteps();
  grid.update(state.step, state.node, state.split);
  showFigures(byId('figures'), now, other, state.step);
  showSplits(byId('splits'), now, state.step, state.allSplits, pointAt, () => { state.allSplits = true; show(); });
  showNode(byId('node'), now, state.node, state.step);
  showDevices(byId('devices'), variant(), now, byId('scale').checked);
  showRemarks(byId('remarks'), variant(), PHASES[state.phase]);
  showMessages(byId('messages'), now);
  const hash = new URLSearchParams({ phase: PHASES[state.phase], step: state.step, choices: state.choices.join('.') });
  window.history.replaceState(null, '', `#${hash}`);
}

// The state that the address names, as far as it makes sense.
function readAddress() {
  const hash = new URLSearchParams(window.location.hash.slice(1));
  state.phase = Math.max(0, PHASES.indexOf(hash.get('phase')));
  const choices = (hash.get('choices') || '').split('.').map(Number);
  const known = choices.length === given.length &&
                choices.every((choice, t) => Number.isInteger(choice) && data.toggles[t].choices[choice] !== undefined);
  if (known) state.choices = choices;
  const step = Number(hash.get('step') ?? passCount());
  state.step = Number.isInteger(step) ? Math.max(0, Math.min(passCount(), step)) : passCount();
}

function onKey(event) {
  const handled = event.target instanceof Element && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (!handled || variant().refused !== undefined) return;
  const pressing = event.target.closest('button, a');
  if (event.target.closest('select')) return;
  if (event.key === 'p') setPhase(0);
  else if (event.key === 'd') setPhase(1);
  else if (event.target.closest('input')) return;
  else if (event.key === 'ArrowRight') { pause(); setStep(state.step + 1); }
  else if (event.key === 'ArrowLeft') { pause(); setStep(state.step - 1); }
  else if (event.key === ' ' && !pressing) playOrPause();
  else return;
  event.preventDefault();
}

function setTheme(theme) {
  const dark = theme === 'auto' ? window.matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark';
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  byId('theme').textContent = `Theme: ${theme}`;
  byId('theme').dataset.theme = theme;
}

function describeModel() {
  const { model, options } = data;
  const name = model.name || 'unnamed model';
  document.title = `weft explain: ${name}`;
  byId('summary').textContent = [
    `${name} (${model.architecture})`, `${model.layers} layers`, model.experts > 0 ? `${model.experts} experts` : '',
    `context ${options.context}`, `keys ${options.key_type}, values ${options.value_type}`,
    counted(data.devices.length, 'device'),
  ].filter((part) => part).join(' · ');
}

function start() {
  colourDevices();
  describeModel();
  readAddress();
  const { options } = data;
  addChoices('phase', [`prefill ${options.batch}`, `decode ${options.sequences}`], state.phase, -1, setPhase);
  data.toggles.forEach((toggle, t) => addChoices(toggle.name, toggle.choices, state.choices[t], toggle.given, (choice) => {
    state.choices[t] = choice;
    state.split = -1;
    rebuild();
  }));
  byId('previous').addEventListener('click', () => { pause(); setStep(state.step - 1); });
  byId('next').addEventListener('click', () => { pause(); setStep(state.step + 1); });
  byId('play').addEventListener('click', playOrPause);
  byId('scale').addEventListener('change', show);
  byId('cell-text').addEventListener('change', (event) => { grid.text = event.target.value; show(); });
  byId('expand').addEventListener('click', (event) => {
    const open = event.target.textContent === 'Expand all';
    grid.expandAll(open);
    event.target.textContent = open ? 'Fold all' : 'Expand all';
  });
  byId('theme').addEventListener('click', () => {
    const order = ['auto', 'light', 'dark'];
    setTheme(order[(order.indexOf(byId('theme').dataset.theme) + 1) % order.length]);
  });
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => setTheme(byId('theme').dataset.theme));
  document.addEventListener('keydown', onKey);
  setTheme('auto');
  rebuild();
}

start();
