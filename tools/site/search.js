"use strict";
// The site's search: zensical's engine, asked so that it also answers whole questions.
// The engine finds the sections that have every word of a query. A question has words that no page needs ("how do I"), and
// often one that the page does not use. Fillers are dropped; if less than a page of results is left, the query is repeated
// without one word, then without two, and so on. Sections with more of the words, and with rarer ones, come first.

const FILLERS = new Set(
  ("a an and are as at be but by can cannot do does for from get has have how i if in into is it its just me my not of on or " +
    "our out so that the their them then there this to use was we what when where which who why will with without you your").split(" "),
);
const ENOUGH = 10; // a page of results
const LAST = new Set(["Architecture", "Testing"]); // pages about how gpukube is made; most people search how it is used
const MOST = 6; // of n words there are 2^n combinations

const post = self.postMessage.bind(self);
let pages = []; // of each section: the page that it is in
let answer = null; // takes the engine's next result
self.postMessage = (message) => (message.type === 3 && answer ? answer(ordered(message.data)) : post(message));
importScripts("engine.js");
const engine = self.onmessage;

function ordered(data) {
  const last = (item) => LAST.has(pages[item.id]);
  return { ...data, items: [...data.items.filter((item) => !last(item)), ...data.items.filter(last)] };
}

const ask = (query, words) =>
  new Promise((resolve) => {
    answer = resolve;
    // the engine writes into what it gets
    engine({ data: { type: 2, data: { ...structuredClone(query), ...(words && { input: words.join(" ") }) } } });
  });

// All choices of some of the words, the rarest first.
function choices(words, count) {
  if (count === 0) return [[]];
  return words.flatMap((word, at) => choices(words.slice(at + 1), count - 1).map((rest) => [word, ...rest]));
}

async function search(query) {
  if (typeof query.input !== "string" || query.page) return ask(query);
  const words = query.input.split(/\s+/).filter(Boolean);
  const kept = words.filter((word) => !FILLERS.has(word.toLowerCase().replace(/[^\p{L}\p{N}]+$/u, "")));
  if (kept.length === 0) return ask(query);
  const found = await ask(query, kept);
  if (found.items.length >= ENOUGH || kept.length === 1) return found;
  const frequency = new Map();
  for (const word of kept) frequency.set(word, (await ask(query, [word])).pagination.total);
  const rarest = [...frequency.keys()].filter((word) => frequency.get(word) > 0);
  rarest.sort((one, other) => frequency.get(one) - frequency.get(other)).splice(MOST);
  const known = new Set(found.items.map((item) => item.id));
  for (let count = rarest.length; count > 0 && found.items.length < ENOUGH; count--) {
    for (const chosen of choices(rarest, count)) {
      for (const item of (await ask(query, chosen)).items) {
        if (!known.has(item.id)) {
          known.add(item.id);
          found.items.push(item);
        }
      }
    }
  }
  return { ...found, pagination: { total: found.items.length } };
}

let turn = Promise.resolve(); // the engine keeps the pages of one query: no other may come in between
self.onmessage = (event) => {
  if (event.data.type === 0) pages = event.data.data.items.map((item) => item.path[1]);
  if (event.data.type !== 2) return engine(event);
  turn = turn.then(async () => {
    const data = await search(event.data.data);
    answer = null;
    post({ type: 3, data });
  });
};
