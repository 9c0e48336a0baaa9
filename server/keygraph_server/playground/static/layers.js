// Places boxes in columns, so that lines lead from a column to the next alone, and cross no box: a box stands as many
// columns from the first one as it takes lines to get there. The same boxes and lines always make the same picture.

const BELOW = 34;
const BETWEEN_LINES = 20;
const CURVES = 56;
const MARGIN = 16;
const SWEEPS = 8;
/** How much wider than high a picture should be. */
const WIDER = 1.5;

const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);
const mean = (numbers) => sum(numbers) / numbers.length;
const heightOf = ({ height, above }) => height + above + BELOW;

/** The columns of all that is joined to a box. */
const columnsFrom = (start, joined) => {
  const seen = new Set([start]);
  const columns = [[start]];
  for (;;) {
    const next = [];
    for (const box of columns.at(-1)) {
      for (const other of joined.get(box)) {
        if (!seen.has(other)) {
          seen.add(other);
          next.push(other);
        }
      }
    }
    if (!next.length) {
      return columns;
    }
    columns.push(next);
  }
};

/** From the box from which they are neither too wide nor too high. */
const bestColumns = (boxes, joined) => {
  const size = (columns) =>
    Math.max(
      sum(columns.map((column) => Math.max(...column.map(({ width }) => width)) + CURVES + 120)),
      WIDER * Math.max(...columns.map((column) => sum(column.map(heightOf)))),
    );
  const sized = boxes.map((box) => columnsFrom(box, joined)).map((columns) => ({ columns, size: size(columns) }));
  return sized.reduce((best, each) => (each.size < best.size ? each : best)).columns;
};

/** Boxes that are joined to each other, directly or not. */
const groups = (boxes, joined) => {
  const left = new Set(boxes);
  const found = [];
  for (const box of boxes) {
    if (left.has(box)) {
      const group = new Set(columnsFrom(box, joined).flat());
      group.forEach((each) => left.delete(each));
      found.push(boxes.filter((each) => group.has(each)));
    }
  }
  return found;
};

/** Orders each column by where the boxes stand that its boxes are joined to. */
const order = (columns, joined) => {
  const place = new Map();
  const number = (column) => column.forEach((box, at) => place.set(box, (at + 0.5) / column.length));
  columns.forEach(number);
  const wanted = (box) => mean([...joined.get(box)].map((other) => place.get(other)).concat(joined.get(box).size ? [] : [0]));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const column of sweep % 2 ? [...columns].reverse() : columns) {
      const by = new Map(column.map((box) => [box, wanted(box)]));
      column.sort((one, other) => by.get(one) - by.get(other));
      number(column);
    }
  }
};

const middle = ({ y, height }) => y + height / 2;

/** Moves the boxes of a column as near as may be to where they want to stand, without changing their order. */
const settle = (column, wanted) => {
  const apart = (one, other) => one.height + BELOW + other.above;
  const down = [];
  column.forEach((box, at) => down.push(at ? Math.max(wanted[at], down[at - 1] + apart(column[at - 1], box)) : wanted[at]));
  const up = [];
  for (let at = column.length - 1; at >= 0; at -= 1) {
    up[at] = at < column.length - 1 ? Math.min(wanted[at], up[at + 1] - apart(column[at], column[at + 1])) : wanted[at];
  }
  column.forEach((box, at) => {
    box.y = Math.round((down[at] + up[at]) / 2);
  });
};

const place = (columns, joined) => {
  for (const column of columns) {
    let y = 0;
    for (const box of column) {
      box.y = y + box.above;
      y += heightOf(box);
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const column of sweep % 2 ? columns : [...columns].reverse()) {
      settle(column, column.map((box) => {
        const others = [...joined.get(box)].filter((other) => other !== box);
        return others.length ? mean(others.map(middle)) - box.height / 2 : box.y;
      }));
    }
  }
};

/** Which sides a line joins: both right ones within a column. */
const sidesOf = ({ from, to }) => (from.column < to.column ? ['right', 'left'] : from.column > to.column ? ['left', 'right'] : ['right', 'right']);

/**
 * Gives each of `boxes` (`{ width, height, above }`: `above` is what stands on top of it) its `x` and `y`, and each of `lines`
 * (`{ from, to, room }`: two boxes, and the width of the text at its beginning) its `path` and its `start`. Returns the size.
 */
export const layOut = (boxes, lines) => {
  const joined = new Map(boxes.map((box) => [box, new Set()]));
  for (const { from, to } of lines) {
    if (from !== to) {
      joined.get(from).add(to);
      joined.get(to).add(from);
    }
  }
  let top = MARGIN;
  let right = 0;
  for (const group of groups(boxes, joined)) {
    const columns = bestColumns(group, joined);
    columns.forEach((column, at) => column.forEach((box) => Object.assign(box, { column: at })));
    const own = lines.filter(({ from }) => group.includes(from));
    const ends = new Map(group.map((box) => [box, { left: [], right: [] }]));
    for (const line of own) {
      const [one, other] = sidesOf(line);
      ends.get(line.from)[one].push({ line, other: line.to, end: 'start' });
      ends.get(line.to)[other].push({ line, other: line.from, end: 'stop' });
    }
    for (const [box, { left, right: onRight }] of ends) {
      box.height = Math.max(box.height, (Math.max(left.length, onRight.length) + 1) * BETWEEN_LINES);
    }
    order(columns, joined);
    place(columns, joined);
    const highest = Math.min(...group.map(({ y, above }) => y - above));
    const gap = (at) => {
      const room = (side, column) => Math.max(0, ...(column || []).flatMap((box) => ends.get(box)[side].filter(({ end }) => end === 'start').map(({ line }) => line.room)));
      return { before: room('right', columns[at]) + 12, after: room('left', columns[at + 1]) + 12 };
    };
    let x = MARGIN;
    columns.forEach((column, at) => {
      const width = Math.max(...column.map((box) => box.width));
      const { before, after } = gap(at);
      for (const box of column) {
        Object.assign(box, { x, width, y: box.y - highest + top });
        Object.assign(box, { outRight: x + width + before, outLeft: x - (at ? gap(at - 1).after : 0) });
      }
      x += width + before + CURVES + after;
    });
    for (const [box, sides] of ends) {
      for (const [side, own] of Object.entries(sides)) {
        own.sort((one, other) => middle(one.other) - middle(other.other));
        own.forEach(({ line, end }, at) => {
          const y = Math.round(box.y + (box.height * (at + 1)) / (own.length + 1));
          line[end] = { x: side === 'right' ? box.x + box.width : box.x, out: side === 'right' ? box.outRight : box.outLeft, y, side };
        });
      }
    }
    for (const line of own) {
      const { start, stop } = line;
      const room = line.from === line.to ? CURVES / 3 : CURVES;
      const bend = start.side === stop.side ? [start.out + room, stop.out + room] : [(start.out + stop.out) / 2, (start.out + stop.out) / 2];
      line.path = `M${start.x} ${start.y}H${start.out}C${bend[0]} ${start.y} ${bend[1]} ${stop.y} ${stop.out} ${stop.y}H${stop.x}`;
    }
    right = Math.max(right, x);
    top = Math.max(...group.map(({ y, height }) => y + height)) + BELOW;
  }
  return { width: Math.max(right, 1), height: top };
};
