"""The Lua scripts of the ledger. Redis runs each one as one step: what it checks still holds when it writes.

Every script checks everything before its first write, because Redis does not undo the writes of a script that fails.
Each may run twice: a caller that got no answer runs it again. An answer is a list: first its kind, then, if it is
refused, the ledger's row as it stood.
"""

from __future__ import annotations

DONE, REFUSED, LOST = b"done", b"refused", b"lost"

_ROW = """
local row = redis.call('HMGET', KEYS[1], 'generation', 'lineage', 'txid', 'started', 'attempt', 'run')
local function refused()
  if not row[1] then return {'refused'} end
  return {'refused', row[1], row[2], row[3], row[4], row[5], row[6] or ''}
end
"""

# KEYS: ledger. ARGV: time. Answers the new generation.
OPEN = """
local generation = redis.call('HINCRBY', KEYS[1], 'generation', 1)
for _, name in ipairs({'txid', 'started', 'written'}) do redis.call('HSETNX', KEYS[1], name, 0) end
redis.call('HSETNX', KEYS[1], 'lineage', '')
redis.call('HSET', KEYS[1], 'attempt', 0, 'time', ARGV[1])
return generation
"""

# KEYS: owner, the old owner's ledger. ARGV: the note as it was read ("" for none), the new note, whether the old owner
# is shut out.
CLAIM = """
local is = redis.call('GET', KEYS[1]) or ''
if is == ARGV[2] then return {'done'} end
if is ~= ARGV[1] then return {'refused'} end
if ARGV[3] == '1' and redis.call('EXISTS', KEYS[2]) == 1 then redis.call('HINCRBY', KEYS[2], 'generation', 1) end
redis.call('SET', KEYS[1], ARGV[2])
return {'done'}
"""

# KEYS: ledger, marks. ARGV: generation, lineage, the checkpoint's txid, whether older batches are forgotten, time, run.
JOIN = f"""{_ROW}
if row[1] ~= ARGV[1] then return refused() end
local over, same = tonumber(ARGV[3]), row[2] == ARGV[2]
redis.call('HSET', KEYS[1], 'run', ARGV[6])
if same and tonumber(row[3]) >= over then return {{'done'}} end
if ARGV[4] == '1' and not same then
  redis.call('HSET', KEYS[1], 'lineage', ARGV[2], 'txid', over, 'started', 0, 'written', over, 'time', ARGV[5])
  redis.call('DEL', KEYS[2])
else
  redis.call('HSET', KEYS[1], 'lineage', ARGV[2], 'txid', math.max(tonumber(row[3]), over), 'time', ARGV[5])
end
return {{'done'}}
"""

# KEYS: ledger, marks. ARGV: generation, lineage, txid, attempt, the last txid that this driver knows to be complete.
BEGIN = f"""{_ROW}
local txid = tonumber(ARGV[3])
if row[1] ~= ARGV[1] or row[2] ~= ARGV[2] or txid < math.max(tonumber(row[3]), tonumber(row[4])) then
  return refused()
end
if tonumber(row[3]) < tonumber(ARGV[5]) then return {{'lost', row[3]}} end
if txid == tonumber(row[4]) and tonumber(ARGV[4]) < tonumber(row[5]) then return refused() end
redis.call('HSET', KEYS[1], 'started', ARGV[3], 'attempt', ARGV[4])
redis.call('DEL', KEYS[2])
return {{'done'}}
"""

# KEYS: ledger, marks, then the hash, or one key for each value. ARGV: generation ("" without a driver), lineage, txid
# ("" for none), attempt, partition, milliseconds until the values expire ("" for never), "hash" or "strings", then the
# values; in a hash each behind its name.
COMMIT = f"""
local first = 7
if ARGV[1] ~= '' then
{_ROW}
  local txid = tonumber(ARGV[3])
  if row[1] ~= ARGV[1] or row[2] ~= ARGV[2] then return refused() end
  if txid and (txid ~= math.max(tonumber(row[3]), tonumber(row[4])) or
               (txid == tonumber(row[4]) and ARGV[4] ~= row[5])) then return refused() end
end
if ARGV[7] == 'strings' then
  for i = 3, #KEYS do redis.call('STRLEN', KEYS[i]) end
  for i = 3, #KEYS do
    if ARGV[6] == '' then redis.call('SET', KEYS[i], ARGV[first - 2 + i])
    else redis.call('SET', KEYS[i], ARGV[first - 2 + i], 'PX', ARGV[6]) end
  end
else
  for from = first + 1, #ARGV, 5000 do
    redis.call('HSET', KEYS[3], unpack(ARGV, from, math.min(from + 4999, #ARGV)))
  end
  if ARGV[6] ~= '' and #ARGV > first then redis.call('PEXPIRE', KEYS[3], ARGV[6]) end
end
if ARGV[1] ~= '' and ARGV[3] ~= '' then
  redis.call('HSET', KEYS[2], ARGV[5], ARGV[3] .. ':' .. ARGV[4])
  local written = tonumber(redis.call('HGET', KEYS[1], 'written') or 0)
  if tonumber(ARGV[3]) > written then redis.call('HSET', KEYS[1], 'written', ARGV[3]) end
end
return {{'done'}}
"""

# KEYS: ledger, marks. ARGV: generation, lineage, txid, attempt, time, then the partitions that have committed.
PUBLISH = f"""{_ROW}
if row[1] ~= ARGV[1] or row[2] ~= ARGV[2] then return refused() end
local txid = tonumber(ARGV[3])
if tonumber(row[3]) >= txid then return {{'done'}} end
if tonumber(row[3]) < txid - 1 then return refused() end
for i = 6, #ARGV do
  if redis.call('HGET', KEYS[2], ARGV[i]) ~= ARGV[3] .. ':' .. ARGV[4] then return {{'lost'}} end
end
redis.call('HSET', KEYS[1], 'txid', ARGV[3], 'time', ARGV[5])
return {{'done'}}
"""
