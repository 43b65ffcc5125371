// Light mathematics for what moves under the pointer; tests compare it with Python's. Claims are Python's alone.

export const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
export const norm = (a) => Math.sqrt(dot(a, a));
export const times = (s, a) => a.map((x) => s * x);
export const plus = (a, b) => a.map((x, i) => x + b[i]);

export function softmax(scores) {
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

/** Attention's weights of one query on keys. */
export const weigh = (query, keys, scale = 1) => softmax(keys.map((key) => scale * dot(query, key)));

/** The mean of values by weights. */
export const mix = (weights, values) => values[0].map((_, i) => weights.reduce((sum, w, j) => sum + w * values[j][i], 0));

/** The corners of the convex hull of points in the plane, in order. */
export function hull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  if (sorted.length < 3) return sorted;
  const turn = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (list) => {
    const chain = [];
    for (const point of list) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

/** For keys in the plane: `[key, from, to]`, the angles of a query in which each key has the highest score. */
export function winners(keys, steps = 720) {
  const parts = [];
  for (let i = 0; i < steps; i++) {
    const angle = (2 * Math.PI * (i + 0.5)) / steps;
    const direction = [Math.cos(angle), Math.sin(angle)];
    const scores = keys.map((key) => dot(key, direction));
    const key = scores.indexOf(Math.max(...scores));
    if (parts.at(-1)?.[0] === key) parts.at(-1)[2] = (2 * Math.PI * (i + 1)) / steps;
    else parts.push([key, (2 * Math.PI * i) / steps, (2 * Math.PI * (i + 1)) / steps]);
  }
  if (parts.length > 1 && parts[0][0] === parts.at(-1)[0]) {
    parts[0][1] = parts.pop()[1] - 2 * Math.PI;
  }
  return parts;
}

/** Turn a point in space; `turn` and `tilt` are in degrees. Returns what is right, up and near. */
export function rotate([x, y, z], turn, tilt) {
  const [a, b] = [(turn * Math.PI) / 180, (tilt * Math.PI) / 180];
  const right = x * Math.cos(a) + z * Math.sin(a);
  const away = -x * Math.sin(a) + z * Math.cos(a);
  return [right, y * Math.cos(b) - away * Math.sin(b), y * Math.sin(b) + away * Math.cos(b)];
}

/** The point in space that a step on the screen leads to: the inverse of `rotate` for what is neither near nor far. */
export function unrotate([right, up], turn, tilt) {
  const [a, b] = [(turn * Math.PI) / 180, (tilt * Math.PI) / 180];
  const away = -up * Math.sin(b);
  return [right * Math.cos(a) - away * Math.sin(a), up * Math.cos(b), right * Math.sin(a) + away * Math.cos(a)];
}
