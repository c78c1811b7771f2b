// Elements and words. Whatever comes from the model or the fleet goes into text nodes, never into markup.

const byId = (id) => document.getElementById(id);

// An element with attributes; children are elements or text.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children);
  return element;
}

// Changes what a reader of screens would read again only where it differs.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function bytesText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (bytes >= 1024 && unit + 1 < units.length) {
    bytes /= 1024;
    ++unit;
  }
  return unit === 0 ? `${bytes} B` : `${bytes.toFixed(bytes < 10 ? 2 : bytes < 100 ? 1 : 0)} ${units[unit]}`;
}

const rateText = (value) => (value < 10 ? value.toFixed(1) : value.toFixed(0));

function microsText(micros) {
  return micros < 1000 ? `${micros.toFixed(0)} us` : `${(micros / 1000).toFixed(1)} ms`;
}

const counted = (count, what) => `${count} ${what}${count === 1 ? '' : 's'}`;
