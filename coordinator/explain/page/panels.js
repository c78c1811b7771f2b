// What stands around the layers: figures, splits, a node's history, devices with their memory, remarks, messages.

const MOST_SPLITS = 60;
const MOST_IDLE = 6;
const MEMORY_PARTS = ['weights', 'caches', 'arena', 'crossing', 'workspace'];

// Figures of a plan, with the difference to the options as given.
function showFigures(element, view, given, step) {
  const last = step === view.steps.length - 1;
  let placed = 0;
  for (const place of view.steps[step].places) placed += place >= 0 ? 1 : 0;
  const difference = (value, before, text) => {
    if (before === null || value === before) return '';
    return `${value > before ? '+' : '-'}${text(Math.abs(value - before))} against given`;
  };
  const old = given ? given.plan : null;
  const number = (value) => String(value);
  const list = [
    ['nodes placed', `${placed} / ${view.count}`, ''],
    ['splits', last ? number(view.splits.length) : '-', last ? difference(view.splits.length, old && old.splits.length, number) : ''],
    ['copies', last ? number(view.plan.copies) : '-', last ? difference(view.plan.copies, old && old.copies, number) : ''],
    ['copied', last ? bytesText(view.plan.copied) : '-', last ? difference(view.plan.copied, old && old.copied, bytesText) : ''],
    ['of these weights', last ? bytesText(view.plan.staged) : '-', last ? difference(view.plan.staged, old && old.staged, bytesText) : ''],
    ['inputs', bytesText(view.plan.inputs), ''],
  ];
  element.replaceChildren(...list.map(([name, value, delta]) =>
    make('div', {}, make('dt', {}, name), make('dd', {}, value, make('span', { class: 'delta' }, delta)))));
}

function inputsText(inputs) {
  const shown = inputs.slice(0, 3).map(([kind, label, bytes, from]) => {
    const item = make('div', {}, `${word(kind)} ${word(label)} ${bytesText(bytes)}`);
    if (word(kind) !== 'input') item.append(make('span', { class: 'from' }, ` from ${deviceName(from)}`));
    return item;
  });
  if (inputs.length > 3) {
    const rest = inputs.slice(3).reduce((sum, input) => sum + input[2], 0);
    shown.push(make('div', { class: 'from' }, `and ${inputs.length - 3} more, ${bytesText(rest)}`));
  }
  return shown.length > 0 ? shown : [make('span', { class: 'from' }, 'nothing')];
}

// `point(split)` shows where the split is; `all`: every split instead of the first.
function showSplits(element, view, step, all, point, showAll) {
  if (step < view.steps.length - 1) {
    element.replaceChildren(make('p', { class: 'soft' }, 'The last pass cuts the nodes into splits.'));
    return;
  }
  const shown = all ? view.splits : view.splits.slice(0, MOST_SPLITS);
  const head = make('tr', {}, make('th', { class: 'number' }, '#'), make('th', {}, 'device'),
                    make('th', { class: 'number' }, 'nodes'), make('th', {}, 'layers'), make('th', {}, 'copies in'));
  const rows = shown.map((split, index) => make('tr', {},
    make('td', { class: 'number' },
         make('button', { type: 'button', class: 'link', 'aria-label': `Show split ${index}`, onclick: () => point(index) },
              String(index))),
    make('td', {}, deviceChip(split.device)),
    make('td', { class: 'number' }, String(split.end - split.begin)),
    make('td', {}, layersText(view, split.begin, split.end)),
    make('td', {}, ...inputsText(split.inputs))));
  const children = [make('table', {}, make('thead', {}, head), make('tbody', {}, ...rows))];
  if (shown.length < view.splits.length) {
    children.push(make('button', { type: 'button', onclick: showAll }, `Show all ${view.splits.length} splits`));
  }
  element.replaceChildren(...children);
}

function showNode(element, view, node, step) {
  if (node < 0) {
    element.replaceChildren(make('p', { class: 'soft' }, 'Press a cell to see how its operation was placed.'));
    return;
  }
  const now = describe(view, node, step);
  const history = view.plan.passes.map((pass, index) => {
    if (!view.steps[index + 1].changed.has(node)) return null;
    const at = describe(view, node, index + 1);
    return make('li', { class: index + 1 === step ? 'now' : false }, `${pass.name}: `, deviceChip(at.device),
                ' ', make('code', {}, at.code), ` ${at.why}`);
  }).filter((item) => item !== null);
  const last = step === view.steps.length - 1;
  element.replaceChildren(
    make('p', {}, make('strong', {}, now.op), ' ', make('span', { class: 'mono' }, now.label)),
    make('p', {}, deviceChip(now.device), ' ', make('code', {}, now.code), ` ${now.why}`),
    make('p', { class: 'soft' }, [now.layer < 0 ? 'no layer' : `layer ${now.layer}`, `result ${bytesText(now.bytes)}`,
                                  last ? `split ${view.splitOf[node]}` : ''].filter((part) => part).join(' · ')),
    make('ol', { class: 'history', 'aria-label': 'History' }, ...history));
}

// Bars: what each device holds in this step. The mark is the arena's lower bound.
function showDevices(element, variant, view, toCapacity) {
  const parts = data.devices.map((_, d) => {
    const [arena, bound, crossing, workspace] = view.plan.arenas[d];
    return { sizes: [variant.memory[d][0], variant.memory[d][1], arena, crossing, workspace], bound };
  });
  const sum = (device) => device.sizes.reduce((total, size) => total + size, 0);
  const most = Math.max(1, ...parts.map(sum));
  const idle = data.devices.filter((_, d) => sum(parts[d]) === 0).map((device) => device.name);
  const bars = data.devices.map((device, d) => {
    const used = sum(parts[d]);
    if (used === 0) return null;
    const capacity = device.memory;
    const whole = toCapacity && capacity > 0 ? Math.max(capacity, used) : most;
    const bar = make('div', { class: `bar d${d}${capacity > 0 && used > capacity ? ' full' : ''}`, 'aria-hidden': 'true' });
    const text = [];
    let before = 0;
    parts[d].sizes.forEach((size, index) => {
      if (size === 0) return;
      const piece = make('span', { class: `b${index}` });
      piece.style.setProperty('width', `${(100 * size) / whole}%`);
      bar.append(piece);
      let name = `${MEMORY_PARTS[index]} ${bytesText(size)}`;
      if (index === 2) {
        const mark = make('span', { class: 'bound' });
        mark.style.setProperty('left', `${(100 * (before + parts[d].bound)) / whole}%`);
        bar.append(mark);
        name += ` (at least ${bytesText(parts[d].bound)})`;
      }
      before += size;
      text.push(name);
    });
    return make('div', { class: 'device', 'data-device': d },
      make('div', { class: 'device-head' }, deviceChip(d),
           make('span', { class: 'soft' }, `${bytesText(used)}${capacity > 0 ? ` of ${bytesText(capacity)}` : ''}`)),
      bar, make('div', { class: 'parts' }, text.join(' · ')));
  }).filter((bar) => bar !== null);
  if (idle.length > 0) {
    const names = idle.length > MOST_IDLE ? `${idle.slice(0, MOST_IDLE).join(', ')} and ${idle.length - MOST_IDLE} more`
                                          : idle.join(', ');
    bars.push(make('p', { class: 'parts' }, `Nothing is on ${names}.`));
  }
  element.replaceChildren(...bars);
}

function showRemarks(element, variant, phase) {
  const list = variant.remarks.filter((remark) => word(remark[1]) === '' || word(remark[1]) === phase);
  if (list.length === 0) {
    element.replaceChildren(make('p', { class: 'soft' }, 'Nothing unusual.'));
    return;
  }
  element.replaceChildren(...list.map(([code, , text, action]) => {
    const item = make('div', { class: 'remark' }, make('code', {}, word(code)), ` ${word(text)}`);
    if (word(action) !== '') item.append(make('div', { class: 'action' }, word(action)));
    return item;
  }));
}

function showMessages(element, view) {
  const head = make('tr', {}, ...['machine', 'executes', 'replies', 'sends', 'receives'].map((name, index) =>
    make('th', { class: index > 0 ? 'number' : false }, name)));
  const traffic = (count, bytes) => (count === 0 ? '0' : `${count}, ${bytesText(bytes)}`);
  const rows = view.plan.processes.map(([host, executes, replies, sends, sent, receives, received]) => make('tr', {},
    make('td', {}, word(host)),
    ...[executes, replies, traffic(sends, sent), traffic(receives, received)].map((text) =>
      make('td', { class: 'number' }, String(text)))));
  const refusal = word(view.plan.refusal);
  const overlap = view.plan.rotating > 1 ? `Steps overlap, with ${view.plan.rotating} copies of what crosses devices.`
                                         : `Steps do not overlap${refusal ? `: ${refusal}` : ''}.`;
  element.replaceChildren(make('table', {}, make('thead', {}, head), make('tbody', {}, ...rows)),
                          make('p', { class: 'soft' }, overlap));
}
