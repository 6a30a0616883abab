// Fills a JavaScript heap: tokens and an index of node's own library sources, parsed JSON, maps,
// number arrays, buffers. Usage: node node.js MEBIBYTES; prints "ready" and waits.
'use strict';
const fs = require('fs');
const zlib = require('zlib');

const target = Number(process.argv[2]) * 1024;
let state = 12345;
const random = (below) => {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return (state >>> 8) % below;
};
const anonymousKib = () =>
  Number(/^RssAnon:\s+(\d+)/m.exec(fs.readFileSync('/proc/self/status', 'latin1'))[1]);

process.removeAllListeners('warning');
const sources = librarySources();
const kept = [];

// Pairs of name and text; this file alone where node does not show its library.
function librarySources() {
  try {
    const all = Object.entries(process.binding('natives')).sort();
    const texts = all.filter(([, text]) => typeof text === 'string');
    if (texts.length > 0) return texts;
  } catch {}
  return [['node.js', fs.readFileSync(__filename, 'utf8')]];
}

function tokenize(name, text) {
  const tokens = [];
  const lines = text.split('\n');
  lines.forEach((line, row) => {
    for (const match of line.matchAll(/[A-Za-z_$][\w$]*|\d+|"[^"]*"|'[^']*'|\S/g)) {
      const value = match[0];
      const type = /^[A-Za-z_$]/.test(value) ? 'name' : /^\d/.test(value) ? 'number' : 'other';
      tokens.push({ type, value, start: { row, column: match.index }, length: value.length });
    }
  });
  return { name, lines, tokens };
}

function indexWords(file) {
  const index = new Map();
  for (const token of file.tokens) {
    if (!index.has(token.value)) index.set(token.value, []);
    index.get(token.value).push(token.start.row);
  }
  return index;
}

function makeOrders(count) {
  const orders = [];
  for (let i = 0; i < count; i++) {
    orders.push({
      id: 100000 + random(900000),
      customer: { name: `customer ${random(5000)}`, city: ['Oslo', 'Lima', 'Pune'][random(3)] },
      total: random(100000) / 100,
      paid: random(2) === 0,
      items: Array.from({ length: 1 + random(5) }, () => ({ sku: `SKU-${random(99999)}`, n: random(9) })),
    });
  }
  return JSON.parse(JSON.stringify(orders));
}

function step(round) {
  const [name, text] = sources[round % sources.length];
  const file = tokenize(name, text);
  kept.push(file, indexWords(file), makeOrders(300));
  kept.push(Array.from({ length: 4000 }, () => random(1 << 20)));
  kept.push(Float64Array.from({ length: 2000 }, () => random(1 << 24) / 7));
  if (round % 4 === 0) kept.push(Buffer.from(text), JSON.stringify(makeOrders(100)));
  kept.push(zlib.gzipSync(text + name));
  const sparse = new Int32Array(8192);
  for (let i = 0; i < 200; i++) sparse[random(8192)] = random(1 << 16);
  kept.push(sparse);
  // A heap that has lived: holes, and what was in them.
  kept[random(kept.length)] = null;
}

for (let round = 0; anonymousKib() < target; round++) step(round);
console.log('ready');
setInterval(() => kept.length, 1 << 30);
