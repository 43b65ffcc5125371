// What the page has: maps as bytes, and the names of their rows and columns.

/** Read an answer of the server: its header, `small` maps and one `full` map. */
export function readLook(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let at = 4 + Math.ceil(length / 4) * 4;
  let small = null;
  if (header.small) {
    const count = header.small.reduce((product, size) => product * size, 1);
    small = new Uint8Array(buffer, at, count);
    at += Math.ceil(count / 4) * 4;
  }
  const full = header.missing ? null : new Float32Array(buffer, at, header.rows.length * header.columns.length);
  return { header, small, full };
}

/** A map in full, with what views ask of it. */
export class AttentionMap {
  constructor({ rows, columns }, weights) {
    this.rows = rows;
    this.columns = columns;
    this.weights = weights;
  }

  at(row, column) {
    return this.weights[row * this.columns.length + column];
  }

  /** The columns that a row attends to the most, as `[column, weight]`. */
  strongest(row, most = 5) {
    const width = this.columns.length;
    const best = [];
    for (let column = 0; column < width; column++) {
      const weight = this.weights[row * width + column];
      if (weight <= 0 || (best.length === most && weight <= best[most - 1][1])) continue;
      let place = best.length;
      while (place > 0 && best[place - 1][1] < weight) place--;
      best.splice(place, 0, [column, weight]);
      if (best.length > most) best.pop();
    }
    return best;
  }
}

/** A weight as a number with three digits. */
export const showWeight = (weight) => (Math.abs(weight) >= 0.0005 || weight === 0
  ? weight.toFixed(3) : weight.toExponential(1)).replace("-", "−");

/** How a head is called: "layer 2, head 3", "layer 2, mean of the heads", "roll-out to layer 2". */
export function nameHead(layer, head) {
  if (head === "mean") return `layer ${layer}, mean of the heads`;
  return head === "rollout" ? `roll-out to layer ${layer}` : `layer ${layer}, head ${head}`;
}
