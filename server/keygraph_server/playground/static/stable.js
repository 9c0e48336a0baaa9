// Where nodes stand: what was drawn before stays there, and what is new comes beside what it is joined to.

const STEP = 95;
const NEAR = 80;
const positions = new Map();

/** Remembers where everything stands that is drawn. */
export const remember = (graph) => graph.nodes().forEach((node) => void positions.set(node.id(), { ...node.position() }));

/** The nearest free place on a ring around another. */
const beside = (center, taken) => {
  for (let ring = 1; ; ring += 1) {
    for (let step = 0; step < 6 * ring; step += 1) {
      const angle = (2 * Math.PI * step) / (6 * ring) + ring / 2;
      const place = { x: center.x + STEP * ring * Math.cos(angle), y: center.y + STEP * ring * Math.sin(angle) };
      if (taken.every((other) => Math.hypot(other.x - place.x, other.y - place.y) >= NEAR)) {
        return place;
      }
    }
  }
};

/** Places for all nodes of `elements` by their ids; null if most of them are new, so that all should be arranged. */
export const places = (elements) => {
  const ids = elements.filter(({ data }) => !data.source).map(({ data }) => data.id);
  const found = new Map(ids.filter((id) => positions.has(id)).map((id) => [id, positions.get(id)]));
  // Where an answer of other nodes replaced it.
  if (!found.size || 4 * found.size < ids.length) {
    return null;
  }
  const joined = new Map(ids.map((id) => [id, []]));
  for (const { data } of elements.filter(({ data: { source } }) => source)) {
    joined.get(data.source)?.push(data.target);
    joined.get(data.target)?.push(data.source);
  }
  const put = (id, center) => found.set(id, beside(center, [...found.values()]));
  for (let waiting = ids.filter((id) => !found.has(id)); waiting.length; waiting = waiting.filter((id) => !found.has(id))) {
    const next = waiting.find((id) => joined.get(id).some((other) => found.has(other)));
    const parent = next && joined.get(next).find((other) => found.has(other));
    put(next || waiting[0], parent ? found.get(parent) : [...found.values()][0]);
  }
  return found;
};
