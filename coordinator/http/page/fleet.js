// The fleet: what the plan put where, and what it does at this moment. Asked once a second while somebody looks.

const PERIOD_MS = 1000;
const SAMPLES = 120;

const fleet = {
  before: null,   // the last answer
  planText: '',   // of the plan that is shown
  rows: {},       // by process: where its times stand
  rates: [],      // tokens per second, the newest last
  timer: 0,
  figures: null,  // by name: where its number stands
};

function layersText(part) {
  if (part.part !== 'layers') return `${part.part} layer`;
  return part.first === part.last ? `layer ${part.first}` : `layers ${part.first} to ${part.last}`;
}

// Hues by device, in the plan's order.
function huesOf(plan) {
  const hues = new Map();
  for (const {device} of plan.layers) {
    if (!hues.has(device)) hues.set(device, (255 + hues.size * 137.508) % 360);
  }
  return hues;
}

function colour(element, hue) {
  if (hue === undefined) return element;
  element.classList.add('coloured');
  element.style.setProperty('--h', hue.toFixed(0));
  return element;
}

// --- The plan ---

// What of the model a device has a part in: [text, whose hue].
function partsOf(plan, device) {
  const parts = plan.layers.filter((part) => part.device === device.name).map((part) => [layersText(part), device.name]);
  for (const group of plan.groups) {
    const rank = group.ranks.indexOf(device.name);
    if (rank < 0) continue;
    const share = `rank ${rank} of ${group.name} (${(100 * group.shares[rank]).toFixed(0)} %)`;
    for (const part of plan.layers) {
      if (part.device === group.name && part.part === 'layers') parts.push([`${layersText(part)}, ${share}`, group.name]);
    }
  }
  return parts;
}

function memoryBar(device) {
  const total = Math.max(device.total_bytes, device.weight_bytes + device.cache_bytes, 1);
  const bar = make('div', {class: 'bar', 'aria-hidden': 'true'});
  for (const [name, bytes] of [['weights', device.weight_bytes], ['cache', device.cache_bytes]]) {
    const part = make('span', {class: name});
    // A sliver is shown where there is something, however large the device.
    part.style.width = bytes > 0 ? `max(3px, ${(100 * bytes / total).toFixed(2)}%)` : '0';
    bar.append(part);
  }
  const known = device.total_bytes > 0;
  const other = Math.max(0, device.total_bytes - device.free_bytes - device.weight_bytes - device.cache_bytes);
  if (known && other > 0) {
    const part = make('span', {class: 'other'});
    part.style.width = `${(100 * other / total).toFixed(2)}%`;
    bar.append(part);
  }
  const words = make('p', {class: 'soft parts'});
  const key = (name, text) => make('span', {class: `key ${name}`}, text);
  words.append(key('weights', `weights ${bytesText(device.weight_bytes)}`), ' ',
               key('cache', `cache ${bytesText(device.cache_bytes)}`), ' ');
  if (known && other > 0) words.append(key('other', `other ${bytesText(other)}`), ' ');
  if (known) words.append(key('free', `free ${bytesText(device.free_bytes)} of ${bytesText(device.total_bytes)}`));
  else words.append('size unknown');
  return [bar, words];
}

function deviceElement(plan, device, hues) {
  const element = make('div', {class: 'device'},
                       make('h5', {}, device.name, ' ', make('span', {class: 'soft'}, device.description)));
  const parts = make('p', {class: 'chips'});
  for (const [text, of] of partsOf(plan, device)) parts.append(colour(make('span', {class: 'chip'}, text), hues.get(of)));
  if (!parts.firstChild) parts.append(make('span', {class: 'soft'}, device.weights > 0 ? counted(device.weights, 'weight') : 'no layer'));
  element.append(parts, ...memoryBar(device));
  return element;
}

function hostElement(plan, host, hues) {
  const facts = [host.machine, host.release && `weft ${host.release}`, host.ping_us > 0 && `${microsText(host.ping_us)} away`,
                 host.has_cache && 'keeps weights'];
  const times = make('div', {class: 'times'});
  const element = make('article', {class: 'host'}, make('h4', {}, host.label),
                       make('p', {class: 'soft'}, facts.filter(Boolean).join(', ')));
  for (const device of plan.devices) {
    if (device.host === host.name) element.append(deviceElement(plan, device, hues));
  }
  element.append(times);
  fleet.rows[host.name] = times;
  return element;
}

function showLayers(plan, hues) {
  const strip = byId('strip');
  strip.replaceChildren();
  const cell = (text, part) => strip.append(colour(make('span', {class: 'cell'}, text), hues.get(part.device)));
  for (const part of plan.layers) {
    if (part.part !== 'layers') cell(part.part === 'input' ? 'in' : 'out', part);
    else for (let layer = part.first; layer <= part.last; ++layer) cell(String(layer), part);
  }
  setText(byId('split'), `${plan.architecture}, ${counted(plan.layer_count, 'layer')}: ${plan.split}`);
  const rows = make('tbody');
  const row = (what, device, why) => rows.append(
      make('tr', {}, make('td', {}, what), make('td', {}, colour(make('span', {class: 'chip'}, device), hues.get(device))),
           make('td', {}, why)));
  for (const part of plan.layers) row(layersText(part), part.device, part.why);
  for (const stray of plan.strays) {
    row(stray.count > 1 ? `${stray.first} and ${stray.count - 1} more` : stray.first, stray.device, stray.why);
  }
  if (plan.strays_left_out > 0) row(`and ${plan.strays_left_out} more elsewhere`, '', '');
  const head = make('thead', {}, make('tr', {}, ...['What', 'Where', 'Why'].map((text) => make('th', {scope: 'col'}, text))));
  byId('layers').replaceChildren(head, rows);
}

function showPlan(plan) {
  const text = JSON.stringify(plan);
  if (text === fleet.planText) return;
  fleet.planText = text;
  fleet.rows = {};
  const gone = plan === null;
  byId('hosts').replaceChildren();
  byId('remarks-section').hidden = gone || plan.remarks.length === 0;
  if (gone) {
    byId('strip').replaceChildren();
    byId('layers').replaceChildren();
    setText(byId('split'), '');
    return;
  }
  const hues = huesOf(plan);
  byId('hosts').append(...plan.hosts.map((host) => hostElement(plan, host, hues)));
  showLayers(plan, hues);
  byId('remarks').replaceChildren(...plan.remarks.map((remark) => make('li', {}, remark)));
}

// --- What it does ---

function figure(name, label) {
  const value = make('dd', {}, '-');
  byId('figures').append(make('div', {}, make('dt', {}, label), value));
  fleet.figures[name] = value;
}

function makeFigures() {
  fleet.figures = {};
  figure('rate', 'Tokens/s');
  figure('prompt', 'Prompt tokens/s');
  figure('active', 'Sequences');
  figure('waiting', 'Waiting');
  figure('pages', 'KV pages in use');
  figure('batch', 'Tokens a step');
}

// Answers that may be compared: of one session, and in order.
function comparable(before, now) {
  return before !== null && now.seconds > before.seconds &&
         now.counters.sessions_opened === before.counters.sessions_opened;
}

function showFigures(before, now) {
  const set = (name, text) => setText(fleet.figures[name], text);
  const seconds = before === null ? 0 : now.seconds - before.seconds;
  const grown = (name) => (before === null ? 0 : Math.max(0, now.counters[name] - before.counters[name]));
  const rate = seconds > 0 ? grown('generated_tokens') / seconds : 0;
  fleet.rates.push(rate);
  if (fleet.rates.length > SAMPLES) fleet.rates.shift();
  set('rate', rateText(rate));
  set('prompt', rateText(seconds > 0 ? grown('prompt_tokens') / seconds : 0));
  set('active', `${now.active} of ${now.slots}`);
  set('waiting', String(now.waiting));
  const used = now.pages.total > 0 ? 100 * now.pages.used / now.pages.total : 0;
  set('pages', `${used.toFixed(0)} %`);
  const steps = grown('steps');
  if (steps > 0) set('batch', rateText(grown('step_tokens') / steps));
  drawRates();
}

function drawRates() {
  const most = Math.max(1, ...fleet.rates);
  const left = SAMPLES - fleet.rates.length;
  const points = fleet.rates.map((rate, i) => `${left + i},${(29 - 27 * rate / most).toFixed(2)}`);
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'polyline');
  line.setAttribute('points', points.join(' '));
  byId('graph').replaceChildren(line);
}

// Where the time of a step went, for each process.
function showTimes(before, now) {
  if (!comparable(before, now)) return;
  for (const process of now.processes) {
    const was = before.processes.find((one) => one.name === process.name);
    const row = fleet.rows[process.name];
    if (!was || !row || process.steps <= was.steps) continue;
    const steps = process.steps - was.steps;
    const micros = (name) => 1e6 * Math.max(0, process[name] - was[name]) / steps;
    const compute = micros('compute_seconds');
    const wait = micros('wait_seconds');
    const wire = Math.max(0, micros('round_trip_seconds') - compute - wait);
    const all = Math.max(compute + wait + wire, 1e-9);
    const bar = make('div', {class: 'bar', 'aria-hidden': 'true'});
    const words = make('p', {class: 'soft parts'}, 'per step: ');
    for (const [name, value] of [['compute', compute], ['wait', wait], ['wire', wire]]) {
      const part = make('span', {class: name});
      part.style.width = `${(100 * value / all).toFixed(1)}%`;
      bar.append(part);
      words.append(make('span', {class: `key ${name}`}, `${name} ${microsText(value)}`), ' ');
    }
    row.replaceChildren(bar, words);
  }
}

function showHealth(now) {
  const good = now.ready && now.progressing;
  const element = byId('health');
  element.classList.toggle('bad', !good);
  setText(element, good ? 'ready' : 'not ready');
  setText(byId('model'), now.model);
  const trouble = byId('fleet-trouble');
  trouble.hidden = good;
  setText(trouble, good ? '' : now.trouble);
  const {sessions_opened: opened, sessions_lost: lost} = now.counters;
  setText(byId('session'), lost > 0 ? `plan ${opened}, made after a loss` : '');
}

function showFleet(now) {
  showHealth(now);
  showPlan(now.plan);
  showFigures(fleet.before, now);
  showTimes(fleet.before, now);
  fleet.before = now;
}

// Asks again in a while; without a key, once there is one.
async function pollFleet() {
  clearTimeout(fleet.timer);
  if (document.visibilityState === 'hidden') return;
  let wait = PERIOD_MS;
  try {
    showFleet(await getJson('/v1/fleet'));
  } catch (error) {
    if (error.status === 401) return;
    wait = 3 * PERIOD_MS;
    fleet.before = null;
    byId('health').classList.add('bad');
    setText(byId('health'), 'no answer');
  }
  clearTimeout(fleet.timer);
  fleet.timer = setTimeout(pollFleet, wait);
}

function startFleet() {
  makeFigures();
  document.addEventListener('visibilitychange', pollFleet);
  pollFleet();
}
