// Produces or works for BullMQ, as a driver of bench: node bullmq.mjs ADDRESS, or node bullmq.mjs --version.
//
// Requests come on stdin and answers go to stdout, a JSON object a line; driver.go says what they mean. Finished jobs
// are removed (BullMQ's default keeps all of them). The process ends as soon as stdin does.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import readline from 'node:readline';

const require = createRequire(fileURLToPath(new URL('../.peers/node/', import.meta.url)));
const limit = 600; // seconds for a worker to run its tasks

const answer = (fields) => process.stdout.write(`${JSON.stringify(fields)}\n`);

function fail(error) {
  process.stdout.write(`${JSON.stringify({ error: String(error?.stack ?? error) })}\n`, () => process.exit(1));
}

// now is the time in ns since 1970. Date.now() has only ms.
const now = () => (performance.timeOrigin + performance.now()) * 1e6;

function cpuSeconds(since) {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1e6;
}

async function produce(queue, { n, producers = 0, batch = 0, rate = 0, size = 0 }) {
  const number = 1700000000000000000; // a multiple of 256, which a double holds
  const b = size ? 'x'.repeat(size) : 'hello-task';
  const add = (a) => queue.add('noop', { a, b });
  const begin = performance.now();
  const cpu = process.cpuUsage();
  if (batch) {
    for (let i = 0; i < n; i += batch) {
      const length = Math.min(batch, n - i);
      await queue.addBulk(Array.from({ length }, () => ({ name: 'noop', data: { a: number, b } })));
    }
  } else if (rate && producers === 1) {
    for (let i = 0; i < n; i++) {
      const wait = begin + (i / rate) * 1000 - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      await add(Math.round(now()));
    }
  } else if (rate) {
    await pace(add, n, rate);
  } else {
    let left = n;
    await Promise.all(Array.from({ length: producers || 1 }, async () => {
      while (left-- > 0) await add(number);
    }));
  }
  return { seconds: (performance.now() - begin) / 1000, cpu: cpuSeconds(cpu) };
}

// pace calls add at fixed times, whether earlier calls have returned or not. It polls the clock for the last 2 ms
// before each time, because timers are up to that late.
async function pace(add, n, rate) {
  const start = now();
  const calls = [];
  for (let i = 0; i < n; i++) {
    const due = start + (i / rate) * 1e9;
    const wait = (due - now()) / 1e6;
    if (wait > 2) await new Promise((resolve) => setTimeout(resolve, wait - 2));
    while (now() < due) await new Promise((resolve) => setImmediate(resolve));
    calls.push(add(Math.round(due)));
  }
  await Promise.all(calls);
}

async function work(Worker, connection, { n, concurrency, latency }) {
  const latencies = latency ? [] : undefined;
  let called = 0;
  let last;
  const done = new Promise((resolve, reject) => {
    last = resolve;
    const late = () => reject(new Error(`only ${called} of ${n} tasks were run within ${limit} s`));
    setTimeout(late, limit * 1000).unref();
  });
  const worker = new Worker('bench', async ({ data: { a, b } }) => {
    if (typeof a !== 'number' || typeof b !== 'string') {
      fail(`expected a number and a string, found ${typeof a} and ${typeof b}`);
    }
    if (latency) latencies.push((now() - a) / 1000);
    if (++called === n) last(performance.now());
  }, { connection, concurrency, autorun: false });
  worker.on('error', fail);
  await worker.waitUntilReady();
  const begin = performance.now();
  const cpu = process.cpuUsage();
  worker.run().catch(fail);
  answer({ ready: true });
  const end = await done;
  return { seconds: (end - begin) / 1000, cpu: cpuSeconds(cpu), latencies: latencies?.slice(0, n) };
}

async function main(args) {
  if (args.length !== 1) throw new Error(`expected the address of a Redis server, found ${JSON.stringify(args)}`);
  if (args[0] === '--version') {
    console.log(`${require('bullmq/package.json').version} on Node ${process.versions.node}`);
    return;
  }
  const { Queue, Worker } = require('bullmq');
  const IORedis = require('ioredis');
  const [host, port] = args[0].split(':');
  const connect = () => new IORedis(Number(port), host, { maxRetriesPerRequest: null });
  let queue;
  const lines = readline.createInterface({ input: process.stdin });
  lines.on('close', () => process.exit(0));
  lines.on('line', async (line) => {
    try {
      const request = JSON.parse(line);
      if (request.op === 'enqueue') {
        queue ??= new Queue('bench', { connection: connect(), defaultJobOptions: { removeOnComplete: true } });
        queue.on('error', fail);
        await queue.waitUntilReady();
        answer(await produce(queue, request));
      } else if (request.op === 'work') {
        answer(await work(Worker, connect(), request));
      } else {
        throw new Error(`expected op enqueue or work, found ${JSON.stringify(request.op)}`);
      }
    } catch (error) {
      fail(error);
    }
  });
}

main(process.argv.slice(2)).catch((error) => {
  console.error(`bullmq.mjs: ${error.message.split('\n')[0]}`);
  process.exit(1);
});
