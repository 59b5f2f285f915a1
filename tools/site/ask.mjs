// Ask the site's search as its pages do: node ask.mjs SITE < questions (JSON list) > locations, best first (JSON list of lists).
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const site = process.argv[2];
const workers = join(site, "assets/javascripts/workers");
const [worker] = readdirSync(workers).filter((name) => name.startsWith("search."));
const read = (name) => readFileSync(join(workers, name), "utf8");

let heard;
const self = { postMessage: (message) => heard(message) };
const context = vm.createContext({ self, structuredClone, importScripts: (name) => vm.runInContext(read(name), context) });
vm.runInContext(read(worker), context);

const say = (message) =>
  new Promise((resolve) => {
    heard = resolve;
    self.onmessage({ data: message });
  });

const index = JSON.parse(readFileSync(join(site, "search.json"), "utf8"));
await say({ type: 0, data: index });
const answers = [];
for (const input of JSON.parse(readFileSync(0, "utf8"))) {
  const filter = { input: { type: "operator", data: { operator: "and", operands: [] } } };
  const { data } = await say({ type: 2, data: { input, filter } });
  answers.push(data.items.map((item) => index.items[item.id].location));
}
console.log(JSON.stringify(answers));
