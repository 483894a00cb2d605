// The budget of one mesh in one window, spent by a batch of ids in one atomic step and one round trip.
import { type CommandParser, defineScript } from "redis";

// KEYS: the window's counter, then one key per id. ARGV: the limit, and how many seconds every key lives at least.
// An id that has its key is counted already. A spent window records nothing, so that memory is bounded by the limit.
const source = `
local limit = tonumber(ARGV[1])
local before = tonumber(redis.call('GET', KEYS[1]) or '0')
local used = before
local answers = {}
for i = 2, #KEYS do
  if used < limit then
    if redis.call('SET', KEYS[i], '', 'EX', ARGV[2], 'NX') then
      used = used + 1
      answers[i - 1] = 2
    else
      answers[i - 1] = 1
    end
  else
    answers[i - 1] = redis.call('EXISTS', KEYS[i])
  end
end
if used > before then
  redis.call('SET', KEYS[1], used, 'EX', ARGV[2])
end
return answers`;

export const consumeScript = defineScript({
  SCRIPT: source,
  parseCommand(
    parser: CommandParser,
    counterKey: string,
    idKeys: readonly string[],
    limit: number,
    ttlSeconds: number,
  ) {
    parser.push(String(1 + idKeys.length));
    parser.pushKey(counterKey);
    parser.pushKeys([...idKeys]);
    parser.push(String(limit), String(ttlSeconds));
  },
  /** For each id: 2 it has just been covered, 1 it was covered before, 0 it is not. */
  transformReply: (reply: number[]) => reply,
});
