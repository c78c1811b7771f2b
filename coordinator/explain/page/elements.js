// What all parts of the page use: the data, elements, words for numbers. Text of the model goes into text nodes and
// attributes only, never into markup.

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

// An element with attributes; `on...` ones are listeners. Children are elements or text.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children);
  return element;
}

function bytesText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (bytes >= 1024 && unit + 1 < units.length) {
    bytes /= 1024;
    ++unit;
  }
  return unit === 0 ? `${bytes} B` : `${bytes.toFixed(2)} ${units[unit]}`;
}

const counted = (count, what) => {
  if (count === 1) return `1 ${what}`;
  return what.endsWith('y') ? `${count} ${what.slice(0, -1)}ies` : `${count} ${what}s`;
};

const word = (index) => data.texts[index];
const deviceName = (device) => (device < 0 ? 'nowhere' : data.devices[device].name);
const deviceChip = (device) => make('span', { class: `chip d${device}` }, deviceName(device));

// A hue for each device, processors nearly grey. Rules of the page's own style sheet are all that a policy without
// inline styles allows.
function colourDevices() {
  let hue = 255;
  data.devices.forEach((device, index) => {
    const chroma = device.kind === 'cpu' ? 0.025 : 0.105;
    document.styleSheets[0].insertRule(`.d${index} { --h: ${Math.round(hue)}; --c: ${chroma}; }`,
                                       document.styleSheets[0].cssRules.length);
    hue = (hue + 137.508) % 360;
  });
}

// Short names of operations for cells.
const SHORT_OPS = {
  mul_mat: 'mm', mul_mat_id: 'mm id', rms_norm: 'rms', norm: 'norm', add: 'add', mul: 'mul', rope: 'rope',
  kv_store: 'kv', paged_attention: 'attn', get_rows: 'rows', soft_max: 'soft', sum_rows: 'sum', top_k: 'top k',
  set_rows: 'set', ssm_conv: 'conv', gated_delta_net: 'delta', add_id: 'add id',
};
const shortOp = (op) => SHORT_OPS[op] || op.slice(0, 5);
