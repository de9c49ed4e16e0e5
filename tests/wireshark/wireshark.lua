-- The parts of Wireshark's Lua that the plugin uses, for a Lua without Wireshark.
-- `packet` is the packet that passes, `shown` what the plugin added to it.

packet, shown = {}, {}

base = { DEC = 1, ASCII = 2 }
Pref = { string = function(_, default) return default end }
ProtoField = setmetatable({}, { __index = function() return function(abbreviation) return { name = abbreviation } end end })
Field = { new = function(name) return function() return packet[name] end end }
UInt64 = { new = function(text) return text end }
NSTime = { new = function(seconds, rest) return string.format("%d.%09d", seconds, rest) end }
Address = { ip = function(text) return text end, ipv6 = function(text) return text end }
Dir = {
  personal_config_path = function(name) return name end,
  exists = function() return true end,
  open = function() return pairs(indexes) end,
}

local tree = {}
function tree:add(field, value)
  if field.name then shown[#shown + 1] = { field.name, tostring(value) } end
  return self
end
function tree:set_generated() return self end
function tree:append_text() return self end

function Proto() return { prefs = {} } end
function register_postdissector(proto)
  proto.prefs.index = folder
  begin = proto.init
  pass = function()
    shown = {}
    proto.dissector(nil, packet.info, tree)
    return shown
  end
end
