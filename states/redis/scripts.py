"""The Lua scripts of the ledger. Redis runs each one as one step: what it checks still holds when it writes.

Every script checks everything before its first write, because Redis does not undo the writes of a script that fails.
Each may run twice: a caller that got no answer runs it again. It answers 1 if it was done, 0 if the row, or a mark, is
not as the caller has read it; which row follows which is a rule of `states.ledger.protocol`.
"""

from __future__ import annotations

from ..ledger.fence import FIELDS

_FIELDS = ", ".join(map(repr, FIELDS))

# KEYS: ledger, marks. ARGV: the row as it was read, the new row, time, what is deleted ("", "marks", or "all" with the
# txid of the data), the mark that partitions must have, and these partitions.
CHANGE = f"""
local names = {{{_FIELDS}}}
for i, field in ipairs(redis.call('HMGET', KEYS[1], unpack(names))) do
  if (field or '') ~= ARGV[i] then return 0 end
end
for i = 16, #ARGV do
  if redis.call('HGET', KEYS[2], ARGV[i]) ~= ARGV[15] then return 0 end
end
for i, name in ipairs(names) do redis.call('HSET', KEYS[1], name, ARGV[6 + i]) end
redis.call('HSET', KEYS[1], 'time', ARGV[13])
if ARGV[14] ~= '' then redis.call('DEL', KEYS[2]) end
if ARGV[14] == 'all' then redis.call('HSET', KEYS[1], 'written', ARGV[9]) end
return 1
"""

# KEYS: owner, the old owner's ledger. ARGV: the note as it was read ("" for none), the new note, whether the old owner
# is shut out.
CLAIM = """
local is = redis.call('GET', KEYS[1]) or ''
if is == ARGV[2] then return 1 end
if is ~= ARGV[1] then return 0 end
if ARGV[3] == '1' and redis.call('EXISTS', KEYS[2]) == 1 then redis.call('HINCRBY', KEYS[2], 'generation', 1) end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""

# KEYS: ledger, marks, then the hash, or one key for each value. ARGV: the row that has admitted the task ("" without a
# driver), txid ("" for none), the partition, its mark, milliseconds until the values expire ("" for never), "hash" or
# "strings", then the values; in a hash each behind its name.
COMMIT = f"""
local txid, expire, first = tonumber(ARGV[7]), ARGV[10], 11
if ARGV[1] ~= '' then
  for i, field in ipairs(redis.call('HMGET', KEYS[1], {_FIELDS})) do
    if (field or '') ~= ARGV[i] then return 0 end
  end
end
if ARGV[first] == 'strings' then
  for i = 3, #KEYS do redis.call('STRLEN', KEYS[i]) end
  for i = 3, #KEYS do
    if expire == '' then redis.call('SET', KEYS[i], ARGV[first - 2 + i])
    else redis.call('SET', KEYS[i], ARGV[first - 2 + i], 'PX', expire) end
  end
else
  for from = first + 1, #ARGV, 5000 do
    redis.call('HSET', KEYS[3], unpack(ARGV, from, math.min(from + 4999, #ARGV)))
  end
  if expire ~= '' and #ARGV > first then redis.call('PEXPIRE', KEYS[3], expire) end
end
if ARGV[1] ~= '' and txid then
  redis.call('HSET', KEYS[2], ARGV[8], ARGV[9])
  if txid > tonumber(redis.call('HGET', KEYS[1], 'written') or 0) then
    redis.call('HSET', KEYS[1], 'written', ARGV[7])
  end
end
return 1
"""
