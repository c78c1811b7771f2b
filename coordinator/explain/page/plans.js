// Plans as arrays that can be asked for any step. All of them were computed by weft; here they are only unpacked.

// The variant of a choice per toggle: the last toggle changes fastest.
function variantOf(choices) {
  let index = 0;
  data.toggles.forEach((toggle, t) => {
    index = index * toggle.choices.length + choices[t];
  });
  return data.variants[index];
}

const planOf = (variant, phase) => data.plans[variant.phases[phase]];

// Where every node is after each step (positions in data.places, -1: nowhere), and which changed in it. Step 0 is before
// the first pass.
function unpackSteps(plan, count) {
  const steps = [{ places: new Int32Array(count).fill(-1), changed: new Set() }];
  for (const pass of plan.passes) {
    const places = steps[steps.length - 1].places.slice();
    const changed = new Set();
    let node = 0;
    for (let i = 0; i < pass.changes.length; i += 2) {
      node += pass.changes[i];
      places[node] = pass.changes[i + 1];
      changed.add(node);
    }
    steps.push({ places, changed });
  }
  return steps;
}

function unpackSplits(plan, count) {
  let begin = 0;
  const splitOf = new Int32Array(count);
  const splits = plan.splits.map(([device, end, inputs], index) => {
    splitOf.fill(index, begin, end);
    const split = { device, begin, end, inputs };
    begin = end;
    return split;
  });
  return { splits, splitOf };
}

// Layers whose operations have the same history on the same devices are one row. A split may begin with the row: only its
// first layer then shows the cut, unless all have it.
function groupRows(graph, steps, splits, count) {
  const begins = new Set(splits.map((split) => split.begin));
  const signature = (begin, end) => {
    const parts = [];
    for (let node = begin; node < end; ++node) {
      parts.push(graph.ops[node], node > begin && begins.has(node) ? '|' : '');
      for (const step of steps) {
        const place = step.places[node];
        parts.push(place < 0 ? '' : `${data.places[place][0]},${data.places[place][1]}`);
      }
    }
    return parts.join(';');
  };
  const rows = [];
  for (let begin = 0, end = 0; begin < count; begin = end) {
    const layer = graph.layers[begin];
    for (end = begin; end < count && graph.layers[end] === layer;) ++end;
    const member = { layer, begin, end };
    const key = signature(begin, end);
    const cut = begins.has(begin);
    const row = rows[rows.length - 1];
    const same = layer >= 0 && row && row.key === key && (row.members.length > 1 ? row.cut === cut : row.cut || !cut);
    if (same) {
      row.members.push(member);
      row.cut = cut;
    } else {
      rows.push({ members: [member], key, cut });
    }
  }
  return rows;
}

const unpacked = new Map();

// A plan with everything above, made once.
function unpack(plan) {
  if (!unpacked.has(plan)) {
    const graph = data.graphs[plan.graph];
    const count = graph.ops.length;
    const steps = unpackSteps(plan, count);
    const { splits, splitOf } = unpackSplits(plan, count);
    unpacked.set(plan, { plan, graph, count, steps, splits, splitOf, rows: groupRows(graph, steps, splits, count) });
  }
  return unpacked.get(plan);
}

// A node at a step, in words.
function describe(view, node, step) {
  const place = view.steps[step].places[node];
  const [device, code, why] = place < 0 ? [-1, -1, -1] : data.places[place];
  return {
    op: data.ops[view.graph.ops[node]],
    label: word(view.graph.labels[node]),
    layer: view.graph.layers[node],
    bytes: view.graph.bytes[node],
    device,
    code: code < 0 ? '-' : word(code),
    why: why < 0 ? 'not placed yet' : word(why),
  };
}

// "input, blk.0 to 3, output" for the nodes of a split.
function layersText(view, begin, end) {
  const parts = [];
  for (let i = begin; i < end;) {
    const first = view.graph.layers[i];
    let last = first;
    let next = i;
    for (; next < end && (view.graph.layers[next] < 0) === (first < 0); ++next) last = view.graph.layers[next];
    if (first < 0) parts.push(i === 0 ? 'input' : 'output');
    else parts.push(first === last ? `blk.${first}` : `blk.${first} to ${last}`);
    i = next;
  }
  return parts.join(', ');
}
