// The layers: a row for each, or for a group of equal ones; a cell for each operation.

class Grid {
  // `select` is called with a node that was pressed.
  constructor(element, tip, select) {
    this.element = element;
    this.tip = tip;
    this.select = select;
    this.expanded = new Set();  // groups by their first layer
    this.cells = new Map();     // by node
    this.text = 'op';
    element.addEventListener('pointerover', (event) => this.showTip(event.target));
    element.addEventListener('pointerout', () => this.hideTip());
    element.addEventListener('focusin', (event) => this.showTip(event.target));
    element.addEventListener('focusout', () => this.hideTip());
    element.addEventListener('click', (event) => this.press(event.target));
    element.addEventListener('keydown', (event) => this.key(event));
  }

  // Rows anew, for another plan or other groups.
  build(view) {
    this.view = view;
    this.cells.clear();
    const rows = [];
    for (const row of view.rows) {
      const open = row.members.length > 1 && this.expanded.has(row.members[0].layer);
      rows.push(this.makeRow(row, row.members[0], !open));
      if (open) for (const member of row.members.slice(1)) rows.push(this.makeRow(row, member, false));
    }
    this.element.replaceChildren(...rows);
  }

  rowName(row, member, grouped) {
    if (member.layer < 0) return member.begin === 0 ? 'input' : 'output';
    if (!grouped || row.members.length === 1) return `blk.${member.layer}`;
    const last = row.members[row.members.length - 1].layer;
    return `blk.${member.layer} to ${last}`;
  }

  makeRow(row, member, grouped) {
    const name = this.rowName(row, member, grouped);
    const first = member === row.members[0];
    const head = make('div', { class: 'row-head', role: 'rowheader' });
    if (row.members.length > 1 && first) {
      head.append(make('button', {
        type: 'button',
        'aria-expanded': String(!grouped),
        onclick: () => this.toggle(row),
      }, grouped ? `${name}  ×${row.members.length}` : `${name}  fold`));
    } else {
      head.append(name);
    }
    const strip = make('div', { class: 'strip', role: 'presentation' });
    for (let node = member.begin; node < member.end; ++node) {
      const cell = make('div', { role: 'gridcell', tabindex: '-1', 'data-node': node });
      this.cells.set(node, cell);
      strip.append(cell);
    }
    return make('div', { class: 'row', role: 'row' }, head, strip);
  }

  toggle(row) {
    const layer = row.members[0].layer;
    if (!this.expanded.delete(layer)) this.expanded.add(layer);
    this.build(this.view);
    this.update(this.step, this.chosen, this.marked);
    this.cells.get(row.members[0].begin).closest('.row').querySelector('button').focus();
  }

  expandAll(open) {
    this.expanded.clear();
    if (open) for (const row of this.view.rows) if (row.members.length > 1) this.expanded.add(row.members[0].layer);
    this.build(this.view);
    this.update(this.step, this.chosen, this.marked);
  }

  // Colours and words of all cells at a step. `marked`: a split to point out, or -1.
  update(step, chosen, marked) {
    Object.assign(this, { step, chosen, marked });
    const last = step === this.view.steps.length - 1;
    const changed = this.view.steps[step].changed;
    let focusable = null;
    for (const [node, cell] of this.cells) {
      const at = describe(this.view, node, step);
      const split = this.view.splitOf[node];
      const names = ['cell', at.device < 0 ? 'nowhere' : `d${at.device}`];
      if (changed.has(node)) names.push('changed');
      if (last && node > 0 && this.view.splits[split].begin === node) names.push('cut');
      if (last && split === marked) names.push('marked');
      if (node === chosen) names.push('chosen');
      cell.className = names.join(' ');
      cell.textContent = { op: shortOp(at.op), cause: at.code, device: at.device < 0 ? '-' : String(at.device) }[this.text];
      cell.setAttribute('aria-label', `${at.op} ${at.label}: ${deviceName(at.device)}, ${at.code}`);
      cell.tabIndex = -1;
      if (focusable === null || node === chosen) focusable = cell;
    }
    if (focusable) focusable.tabIndex = 0;
  }

  nodeOf(target) {
    const cell = target instanceof Element ? target.closest('.cell') : null;
    return cell ? Number(cell.dataset.node) : -1;
  }

  press(target) {
    const node = this.nodeOf(target);
    if (node >= 0) this.select(node);
  }

  key(event) {
    const node = this.nodeOf(event.target);
    if (node < 0) return;
    if (event.key === 'Enter') this.select(node);
    const nodes = [...this.cells.keys()];
    const at = nodes.indexOf(node);
    let target;
    if (event.key === 'ArrowRight') target = at + 1;
    else if (event.key === 'ArrowLeft') target = at - 1;
    else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') target = this.rowTarget(nodes, node, event.key);
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (target >= 0 && target < nodes.length) this.cells.get(nodes[target]).focus();
  }

  // The cell above or below, as positions among the nodes that are shown.
  rowTarget(nodes, node, key) {
    const row = this.cells.get(node).closest('.row');
    const other = key === 'ArrowDown' ? row.nextElementSibling : row.previousElementSibling;
    if (!other) return -1;
    const index = [...row.querySelectorAll('.cell')].indexOf(this.cells.get(node));
    const cells = other.querySelectorAll('.cell');
    return nodes.indexOf(Number(cells[Math.min(index, cells.length - 1)].dataset.node));
  }

  showTip(target) {
    const node = this.nodeOf(target);
    if (node < 0) return;
    const at = describe(this.view, node, this.step);
    this.tip.replaceChildren(
      make('div', {}, make('strong', {}, at.op), ` ${at.label}`),
      make('div', { class: 'soft' }, `${deviceName(at.device)} · ${at.code} · ${at.why}`));
    this.tip.hidden = false;
    const box = this.cells.get(node).getBoundingClientRect();
    const left = Math.min(box.left, window.innerWidth - this.tip.offsetWidth - 8);
    const below = box.bottom + 8 + this.tip.offsetHeight < window.innerHeight;
    this.tip.style.setProperty('left', `${Math.max(8, left)}px`);
    this.tip.style.setProperty('top', `${below ? box.bottom + 8 : box.top - this.tip.offsetHeight - 8}px`);
  }

  hideTip() {
    this.tip.hidden = true;
  }
}
