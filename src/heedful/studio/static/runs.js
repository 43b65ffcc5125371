import { el, fill, models } from "./base.js";

const offered = await models((model) => model.kind === "run");
const items = offered.map((model) => el("li", {}, model.name));
fill(document.getElementById("runs"), items.length ? el("ul", {}, items) : el("p", {}, "There are no runs here yet."));
