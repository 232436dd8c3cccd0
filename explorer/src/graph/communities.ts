// Communities by the method of Louvain: nodes go where they raise the modularity most, then communities
// become the nodes of a smaller graph, until nothing moves. Nodes come in their order, so that the same
// graph always has the same communities.

export type Weighted = readonly [a: number, b: number, weight: number];

interface Level {
  count: number;
  edges: readonly Weighted[];
  /** Weights of edges within a node, which was a community. */
  inner: readonly number[];
}

const rounds = 20;

/** The community of each of so many nodes, numbered from 0 in the order of their first nodes. */
export function communities(count: number, edges: readonly Weighted[]): number[] {
  let labels = Array.from({ length: count }, (_, i) => i);
  let level: Level = { count, edges, inner: new Array<number>(count).fill(0) };
  for (;;) {
    const moved = renumber(move(level));
    const next = Math.max(-1, ...moved) + 1;
    if (next === level.count) {
      return labels;
    }
    labels = labels.map((label) => moved[label] ?? 0);
    level = merge(level, moved, next);
  }
}

/** Moves nodes to communities of their neighbours, and returns where they are. */
function move({ count, edges, inner }: Level): number[] {
  const around: [number, number][][] = Array.from({ length: count }, () => []);
  const degrees = inner.map((weight) => 2 * weight);
  for (const [a, b, weight] of edges) {
    around[a]?.push([b, weight]);
    around[b]?.push([a, weight]);
    degrees[a] = (degrees[a] ?? 0) + weight;
    degrees[b] = (degrees[b] ?? 0) + weight;
  }
  const whole = degrees.reduce((sum, degree) => sum + degree, 0) || 1;
  const labels = Array.from({ length: count }, (_, i) => i);
  const sums = [...degrees]; // of the communities
  for (let round = 0, changed = true; changed && round < rounds; round++) {
    changed = false;
    for (let node = 0; node < count; node++) {
      const own = labels[node] ?? 0;
      const degree = degrees[node] ?? 0;
      const towards = new Map<number, number>([[own, 0]]);
      for (const [other, weight] of around[node] ?? []) {
        const label = labels[other] ?? 0;
        towards.set(label, (towards.get(label) ?? 0) + weight);
      }
      sums[own] = (sums[own] ?? 0) - degree;
      const gain = (label: number) => (towards.get(label) ?? 0) - ((sums[label] ?? 0) * degree) / whole;
      let best = own;
      for (const label of towards.keys()) {
        if (gain(label) > gain(best) + 1e-9) {
          best = label;
        }
      }
      sums[best] = (sums[best] ?? 0) + degree;
      labels[node] = best;
      changed ||= best !== own;
    }
  }
  return labels;
}

function renumber(labels: readonly number[]): number[] {
  const numbers = new Map<number, number>();
  return labels.map((label) => {
    const known = numbers.get(label) ?? numbers.size;
    numbers.set(label, known);
    return known;
  });
}

/** Makes nodes of communities. */
function merge({ edges, inner }: Level, labels: readonly number[], count: number): Level {
  const within = new Array<number>(count).fill(0);
  labels.forEach((label, node) => {
    within[label] = (within[label] ?? 0) + (inner[node] ?? 0);
  });
  const between = new Map<number, number>();
  for (const [a, b, weight] of edges) {
    const [x, y] = [labels[a] ?? 0, labels[b] ?? 0];
    if (x === y) {
      within[x] = (within[x] ?? 0) + weight;
    } else {
      const key = Math.min(x, y) * count + Math.max(x, y);
      between.set(key, (between.get(key) ?? 0) + weight);
    }
  }
  return { count, edges: [...between].map(([key, weight]): Weighted => [Math.floor(key / count), key % count, weight]), inner: within };
}
