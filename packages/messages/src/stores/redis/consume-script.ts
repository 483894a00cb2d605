// The budget of one mesh in one window, spent by a batch of ids in one atomic step and one round trip.
// Why: docs/decisions/0098.
import { type CommandParser, defineScript } from "redis";

// KEYS: the ids that this window covers, and those of the window before the last. ARGV: the limit, how many seconds a
// window's ids live at least, the ids. What the budget has spent is how many there are. A spent window records nothing, so
// that memory is bounded by the limit. The window before the last is not read any more: it is freed in the background,
// where an expiry would free hundreds of thousands of ids while every caller waits.
const source = `
local spent = redis.call('SCARD', KEYS[1])
local room = tonumber(ARGV[1]) - spent
local answers = redis.call('SMISMEMBER', KEYS[1], unpack(ARGV, 3))
local fresh, seen = {}, {}
for i = 1, #answers do
  local id = ARGV[i + 2]
  if seen[id] then
    answers[i] = 1
  elseif answers[i] == 0 and #fresh < room then
    fresh[#fresh + 1] = id
    seen[id] = true
    answers[i] = 2
  end
end
if #fresh > 0 then
  redis.call('SADD', KEYS[1], unpack(fresh))
  redis.call('EXPIRE', KEYS[1], ARGV[2])
  if spent == 0 then redis.call('UNLINK', KEYS[2]) end
end
return answers`;

export const consumeScript = defineScript({
  SCRIPT: source,
  parseCommand(
    parser: CommandParser,
    keys: { readonly current: string; readonly outlived: string },
    ids: readonly string[],
    limit: number,
    ttlSeconds: number,
  ) {
    parser.push("2");
    parser.pushKey(keys.current);
    parser.pushKey(keys.outlived);
    parser.push(String(limit), String(ttlSeconds), ...ids);
  },
  /** For each id: 2 it has just been covered, 1 it was covered before, 0 it is not. */
  transformReply: (reply: number[]) => reply,
});
