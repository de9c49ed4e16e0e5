-- Plugin of kwsniff. `kwsniff wireshark --install` writes this file, `--remove` takes it away.
-- It shows what a folder of tables says of a packet: calls, their latency, findings.
-- It needs Wireshark 4.0 or later, and runs in Lua 5.2 and 5.4: no bit32, no operators of 5.3.
--
-- `kwsniff wireshark DIR` writes an index for each capture. Its name is the number and the time of the first
-- packet that it has, so an index is found when that packet passes. packet_index.py describes what is in it.

local MARK = "kwsniff packet index 1\t"
local MOST_GROUPS = 128 -- in memory; a group has 128 messages at most
local END_DIGITS = 20
local VALUES = 20 -- of a message

local kwsniff = Proto("kwsniff", "kwsniff")
local call = ProtoField.uint64("kwsniff.call", "Call", base.DEC, nil, nil, "call_id in api_calls")
local api = ProtoField.string("kwsniff.api", "API", base.ASCII, "api_name in api_calls")
local version = ProtoField.int16("kwsniff.version", "Version", base.DEC, nil, nil, "api_version in api_calls")
local latency = ProtoField.relative_time("kwsniff.latency", "Latency", "latency_ns in api_calls")
local finding = ProtoField.string("kwsniff.finding", "Finding", base.ASCII, "finding in findings")
-- In the order of the index, which is that of the table latencies.
local fields, parts = { call, api, version, latency, finding }, {}
for position, name in ipairs({
  "request_transmission", "network", "queue_wait", "broker", "deliberate_wait", "response_transmission",
}) do
  local label = name:sub(1, 1):upper() .. name:sub(2):gsub("_", " ")
  parts[position] = ProtoField.relative_time("kwsniff.latency." .. name, label, name .. "_ns in latencies")
  fields[#fields + 1] = parts[position]
end
kwsniff.fields = fields
kwsniff.prefs.index = Pref.string("Folder of indexes", "", "Empty: where `kwsniff wireshark DIR` writes them")

local epoch = Field.new("frame.time_epoch")
local payload = Field.new("tcp.len")

local folder, names, index, groups, held

local function read_whole(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local head = file:read(#MARK)
  local ending = head == MARK and file:seek("end", -END_DIGITS - 1) and tonumber(file:read(END_DIGITS))
  if not ending or not file:seek("set", ending) then
    file:close()
    return nil
  end
  local levels, last_level, last_at = {}, nil, nil
  for class, first, last, offset in file:read("*a"):gmatch("(%d+) (%d+) (%d+) (%d+)\n") do
    local level = levels[class] or { first = {}, last = {}, reach = {}, offset = {}, size = {} }
    levels[class] = level
    local at = #level.first + 1
    level.first[at], level.last[at], level.offset[at] = tonumber(first), tonumber(last), tonumber(offset)
    level.reach[at] = math.max(level.last[at], level.reach[at - 1] or 0)
    if last_level then last_level.size[last_at] = level.offset[at] - last_level.offset[last_at] end
    last_level, last_at = level, at
  end
  if last_level then last_level.size[last_at] = ending - last_level.offset[last_at] end
  return { file = file, levels = levels }
end

local function read_group(level, at)
  local offset = level.offset[at]
  local group = groups[offset]
  if group then return group end
  if held >= MOST_GROUPS then groups, held = {}, 0 end
  group = {}
  index.file:seek("set", offset)
  for line in (index.file:read(level.size[at]) or ""):gmatch("([^\n]+)\n") do
    local first, last = line:match("^(%d+)\t(%d+)\t")
    if first then group[#group + 1] = { first = tonumber(first), last = tonumber(last), line = line } end
  end
  groups[offset], held = group, held + 1
  return group
end

-- The messages between whose first and last packet a packet lies.
local function find_messages(number)
  local found = {}
  for _, level in pairs(index.levels) do
    local low, high = 0, #level.first
    while low < high do
      local middle = math.floor((low + high + 1) / 2)
      if level.first[middle] <= number then low = middle else high = middle - 1 end
    end
    for at = low, 1, -1 do
      if level.reach[at] < number then break end
      if level.last[at] >= number then
        for _, message in ipairs(read_group(level, at)) do
          if message.first > number then break end
          if message.last >= number then found[#found + 1] = message end
        end
      end
    end
  end
  table.sort(found, function(one, other)
    if one.first ~= other.first then return one.first < other.first end
    return one.line < other.line
  end)
  return found
end

local function is_end(text, port, address, other_port)
  local make = text:find(":", 1, true) and Address.ipv6 or Address.ip
  return tonumber(port) == other_port and make(text) == address
end

-- Whether a packet has bytes of a message: its first and last one have the message's times, others its sender
-- and receiver, and bytes.
local function has_bytes(message, said, pinfo, time)
  if pinfo.number == message.first then return said[3] == "" or said[3] == time end
  if pinfo.number == message.last then return said[4] == "" or said[4] == time end
  local lengths = { payload() }
  local length = lengths[#lengths]
  return length ~= nil and length.value > 0
    and is_end(said[6], said[7], pinfo.src, pinfo.src_port)
    and is_end(said[8], said[9], pinfo.dst, pinfo.dst_port)
end

local function split(line)
  local said = {}
  for value in line:gmatch("([^\t]*)\t") do said[#said + 1] = value end
  return said
end

local function to_time(nanoseconds)
  local number = tonumber(nanoseconds)
  local rest = math.fmod(number, 1000000000)
  return NSTime.new(math.floor((number - rest) / 1000000000 + 0.5), rest)
end

local function show(tree, said)
  local item = tree
  if said[10] ~= "" then
    item = tree:add(call, UInt64.new(said[10]))
    item:set_generated()
    item:append_text(", " .. said[5])
  end
  if said[11] ~= "" then item:add(api, said[11]):set_generated() end
  if said[12] ~= "" then item:add(version, tonumber(said[12])):set_generated() end
  if said[13] ~= "" then
    local time = item:add(latency, to_time(said[13]))
    time:set_generated()
    for position, part in ipairs(parts) do
      local value = said[13 + position]
      if value ~= "" then time:add(part, to_time(value)):set_generated() end
    end
  end
  for name in said[20]:gmatch("[^,]+") do item:add(finding, name):set_generated() end
end

function kwsniff.init()
  if index then index.file:close() end
  index, groups, held, names = nil, {}, 0, {}
  folder = kwsniff.prefs.index
  if folder == "" then folder = Dir.personal_config_path("kwsniff") end
  if Dir.exists(folder) then
    for name in Dir.open(folder, ".index") do names[name] = true end
  end
end

function kwsniff.dissector(_, pinfo, tree)
  if not index and next(names) == nil then return end
  local moment = epoch()
  local time = ""
  if moment then
    time = string.format("%d", moment.value.secs * 1000000 + math.floor(moment.value.nsecs / 1000))
  end
  if not index then
    local name = string.format("%d-%s.index", pinfo.number, time)
    if not names[name] then return end
    index = read_whole(Dir.exists(folder) and folder .. "/" .. name)
    names = {}
    if not index then return end
  end
  local root
  for _, message in ipairs(find_messages(pinfo.number)) do
    local said = split(message.line)
    if #said == VALUES and has_bytes(message, said, pinfo, time) then
      if not root then
        root = tree:add(kwsniff)
        root:set_generated()
      end
      show(root, said)
    end
  end
end

register_postdissector(kwsniff)
