-- Wireshark's and tshark's dissector of weft: probes, samples, link-state updates, the
-- scheduler's messages, congestion feedback, the UDP tunnel, labels in SRv6 and MPLS, the number
-- of the flowcell in the IPv4 ID or the IPv6 flow label, CONGA's marks, and the comments of weft
-- capture.
--
--   tshark -X lua_script:weft.lua -r run.pcapng -Y weft.note.cause==timed-out
--   cp weft.lua ~/.local/lib/wireshark/plugins/
--
-- The formats are those of packages encap, topoupdate, hedera/wire, flowcell and conga.

local magic_probe, magic_sample, magic_feedback = 0x77667062, 0x77666c73, 0x77667163

-- All fields are of one protocol, so that "weft" finds all of weft's packets.
local weft = Proto("weft", "weft")
local f = {}
local function field(name, make, label, ...)
  f[name] = make("weft." .. name, label, ...)
end

local hex = base.HEX
local kinds = { [1] = "boomerang", [2] = "request", [3] = "reply" }
local carriers = { [0] = "ipip", [1] = "srv6", [2] = "mpls" }
local update_types = { [1] = "hello", [2] = "update" }
local scheduler_types = { [1] = "hello", [2] = "report", [3] = "answer", [4] = "placement" }

field("version", ProtoField.uint8, "Version")
field("undissected", ProtoField.string, "Not understood")
field("mac", ProtoField.bytes, "MAC")
field("key", ProtoField.uint8, "Key")

field("probe", ProtoField.none, "Probe of a path")
field("probe.kind", ProtoField.uint8, "Kind", base.DEC, kinds)
field("probe.path", ProtoField.uint16, "Path")
field("probe.token", ProtoField.uint64, "Token", hex)
field("probe.origin", ProtoField.ipv4, "Origin")
field("probe.target", ProtoField.ipv4, "Target")
field("probe.via", ProtoField.ipv4, "Via")
field("probe.via6", ProtoField.ipv6, "Via")
field("probe.carrier", ProtoField.uint8, "Carrier", base.DEC, carriers)
field("probe.padding", ProtoField.uint32, "Padding")
field("probe.as_data", ProtoField.bool, "In data's class")

field("sample", ProtoField.none, "Sample of congestion")
field("sample.path", ProtoField.uint24, "Path")
field("sample.ack", ProtoField.bool, "Answer", 8, nil, 0x80)
field("sample.queue", ProtoField.uint8, "Queue (QCM)", base.DEC, nil, 0x7f)
field("sample.meters", ProtoField.uint8, "Meters")
field("sample.marked", ProtoField.bool, "Marked")
field("sample.token", ProtoField.uint64, "Token", hex)
field("sample.received", ProtoField.int64, "Received (ns)")

field("feedback", ProtoField.none, "Congestion feedback")
field("feedback.level", ProtoField.uint8, "Level")
field("feedback.queue", ProtoField.uint32, "Queue (bytes)")

field("feedback.src", ProtoField.ipv4, "Source of the packet")
field("feedback.dst", ProtoField.ipv4, "Destination of the packet")
field("feedback.src_port", ProtoField.uint16, "Source port of the packet")
field("feedback.dst_port", ProtoField.uint16, "Destination port of the packet")
field("feedback.seq", ProtoField.uint32, "Sequence number of the packet")

field("update", ProtoField.none, "Link-state message")
field("update.type", ProtoField.uint8, "Type", base.DEC, update_types)
field("update.count", ProtoField.uint16, "Entries")
field("update.fabric", ProtoField.uint64, "Fingerprint of the fabric", hex)
field("update.sender", ProtoField.uint32, "Sender")
field("update.sender_port", ProtoField.uint16, "Sender's port")
field("update.session", ProtoField.uint64, "Session", hex)
field("update.counter", ProtoField.uint64, "Counter")
field("update.heard", ProtoField.uint64, "Heard session", hex)
field("update.interval", ProtoField.uint32, "Hello interval (us)")
field("update.multiplier", ProtoField.uint8, "Multiplier")
field("update.down", ProtoField.bool, "Link is down", 8, nil, 0x01)
field("update.leaving", ProtoField.bool, "Sender ends", 8, nil, 0x02)
field("update.entry", ProtoField.none, "Entry")
field("update.originator", ProtoField.uint32, "Originator")
field("update.incarnation", ProtoField.uint64, "Incarnation")
field("update.sequence", ProtoField.uint32, "Sequence")
field("update.age", ProtoField.uint32, "Age (ms)")
field("update.bitmap", ProtoField.bytes, "Ports that are down")
field("update.port_down", ProtoField.uint32, "Down port")

field("scheduler", ProtoField.none, "Scheduler's message")
field("scheduler.type", ProtoField.uint8, "Type", base.DEC, scheduler_types)
field("scheduler.count", ProtoField.uint16, "Entries")
field("scheduler.fabric", ProtoField.uint64, "Fingerprint of the fabric", hex)
field("scheduler.node", ProtoField.ipv6, "Node")
field("scheduler.session", ProtoField.uint64, "Session", hex)
field("scheduler.counter", ProtoField.uint64, "Counter")
field("scheduler.heard", ProtoField.uint64, "Heard session", hex)
field("scheduler.epoch", ProtoField.uint64, "Epoch")
field("scheduler.leader", ProtoField.ipv6, "Leader")
field("scheduler.leader_port", ProtoField.uint16, "Leader's port")
field("scheduler.entry", ProtoField.none, "Entry")
field("scheduler.proto", ProtoField.uint8, "Protocol")
field("scheduler.src_port", ProtoField.uint16, "Source port")
field("scheduler.dst_port", ProtoField.uint16, "Destination port")
field("scheduler.src", ProtoField.ipv4, "Source")
field("scheduler.dst", ProtoField.ipv4, "Destination")
field("scheduler.src6", ProtoField.ipv6, "Source")
field("scheduler.dst6", ProtoField.ipv6, "Destination")
field("scheduler.rate", ProtoField.uint64, "Rate (bit/s)")
field("scheduler.path", ProtoField.uint16, "Path")
field("scheduler.for", ProtoField.uint32, "Valid (ms)")
field("scheduler.via", ProtoField.ipv4, "Via")
field("scheduler.via6", ProtoField.ipv6, "Via")

field("tunnel", ProtoField.none, "UDP tunnel")
field("tunnel.sealed", ProtoField.bool, "MAC", 8, nil, 0x01)
field("tunnel.partial", ProtoField.bool, "Inner checksum is partial", 8, nil, 0x02)
field("tunnel.has_feedback", ProtoField.bool, "Feedback", 8, nil, 0x04)
field("tunnel.hidden", ProtoField.bool, "Encrypted", 8, nil, 0x08)
field("tunnel.path", ProtoField.uint8, "Path")
field("tunnel.flowcell", ProtoField.uint16, "Flowcell", base.DEC, nil, 0xffc0)
field("tunnel.segment", ProtoField.uint16, "Segment", base.DEC, nil, 0x003f)
field("tunnel.number", ProtoField.uint32, "Packet number")
field("tunnel.feedback", ProtoField.uint32, "Feedback", hex)
field("tunnel.salt", ProtoField.bytes, "Salt")
field("tunnel.counter", ProtoField.uint64, "Counter")
field("tunnel.pair", ProtoField.uint32, "Pair", hex)
field("tunnel.ciphertext", ProtoField.bytes, "Encrypted packet")

field("label", ProtoField.uint32, "Output port")
field("label.end", ProtoField.string, "Taken out by")
field("flowcell", ProtoField.uint16, "Flowcell")
field("segment", ProtoField.uint16, "Segment")
field("mark.feedback", ProtoField.bool, "Mark is feedback")
field("mark.tag", ProtoField.uint8, "Mark's tag")
field("mark.metric", ProtoField.uint8, "Mark's metric")
field("mark.tick", ProtoField.uint8, "Mark's tick")

local notes = { "point", "kind", "carrier", "path", "via", "path-from", "labels", "flowcell", "segment", "tag", "metric",
  "feedback", "again", "hold", "cause" }
local numbers = { path = true, flowcell = true, segment = true, tag = true, metric = true, again = true }
for _, key in ipairs(notes) do
  field("note." .. key:gsub("-", "_"), numbers[key] and ProtoField.uint32 or ProtoField.string, "Note: " .. key)
end
field("note.hold_us", ProtoField.double, "Note: held (us)")

local list = {}
for _, one in pairs(f) do list[#list + 1] = one end
weft.fields = list

weft.prefs.ports = Pref.string("Tunnel's UDP ports", "", "Ports of weft's UDP tunnel, separated by commas. Datagrams that are not encrypted are found at any port.")

local ip_id, ip_tos, ip_df, ip_proto = Field.new("ip.id"), Field.new("ip.dsfield"), Field.new("ip.flags.df"), Field.new("ip.proto")
local ip6_flow, ip6_dst, ip6_class = Field.new("ipv6.flow"), Field.new("ipv6.dst"), Field.new("ipv6.tclass")
local tcp_len, tcp_syn, tcp_seq, icmp, icmp6 = Field.new("tcp.len"), Field.new("tcp.flags.syn"), Field.new("tcp.seq_raw"), Field.new("icmp.type"), Field.new("icmpv6.type")
local comment, mpls = Field.new("frame.comment"), Field.new("mpls.label")

-- last is the innermost value of a field that headers one inside the other have.
local function last(extract)
  local all = { extract() }
  return all[#all]
end

local function note(pinfo, name, text)
  pinfo.cols.protocol = "WEFT"
  pinfo.cols.info = name .. " " .. text
end

-- whole is the length that a message had on the wire. A capture with --snap has less of it.
local function whole(buf)
  return buf:reported_length_remaining()
end

local function is_cut(buf)
  return buf:len() < whole(buf)
end

-- broken says that a message of weft's is none. A quote in an ICMP error may be cut short, and so
-- may be what was captured.
local function broken(tree, buf, why)
  if icmp() or icmp6() or is_cut(buf) then return end
  tree:add(f.undissected, buf(), why)
end

local function probe(buf, pinfo, tree)
  local n = buf:len()
  if n < 8 or buf(0, 4):uint() ~= magic_probe then return false end
  local six = tostring(pinfo.net_src):find(":", 1, true) ~= nil
  local need = six and 36 or 24
  local t = tree:add(weft, buf(), "weft probe")
  t:add(f.probe, buf())
  if n < need or buf(4, 1):uint() ~= 1 or not kinds[buf(5, 1):uint()] then
    broken(t, buf, "a probe that is too short, or of an unknown version or kind")
    return true
  end
  t:add(f.version, buf(4, 1))
  t:add(f["probe.kind"], buf(5, 1))
  t:add(f["probe.path"], buf(6, 2))
  t:add(f["probe.token"], buf(8, 8))
  local class
  if six then
    t:add(f["probe.via6"], buf(16, 16))
    t:add(f["probe.carrier"], buf(32, 1))
    class = last(ip6_class)
  else
    t:add(f["probe.origin"], buf(16, 4))
    t:add(f["probe.target"], buf(20, 4))
    local id = last(ip_id)
    if id then
      t:add(f["probe.carrier"], id.value % 256):set_generated()
      if math.floor(id.value / 256) == 1 and n >= need + 4 then t:add(f["probe.via"], buf(24, 4)) end
    end
    class = last(ip_tos)
  end
  t:add(f["probe.padding"], whole(buf) - need):set_generated()
  if class then t:add(f["probe.as_data"], class.value < 4):set_generated() end
  note(pinfo, "probe", kinds[buf(5, 1):uint()] .. " path " .. buf(6, 2):uint())
  return true
end

local function sample(buf, pinfo, tree)
  if buf:len() < 8 or buf(0, 4):uint() ~= magic_sample then return false end
  local t = tree:add(weft, buf(), "weft sample")
  t:add(f.sample, buf())
  if buf:len() < 32 or buf(8, 1):uint() ~= 1 then
    broken(t, buf, "a sample that is too short, or of an unknown version")
    return true
  end
  t:add(f["sample.path"], buf(4, 3))
  t:add(f["sample.ack"], buf(7, 1))
  t:add(f["sample.queue"], buf(7, 1))
  t:add(f.version, buf(8, 1))
  t:add(f["sample.meters"], buf(9, 1))
  t:add(f["sample.marked"], buf(10, 1))
  t:add(f["sample.token"], buf(12, 8))
  t:add(f["sample.received"], buf(20, 8))
  note(pinfo, "sample", (buf(7, 1):uint() >= 128 and "answer" or "probe") .. " path " .. buf(4, 3):uint() .. " queue " .. buf(7, 1):uint() % 128)
  return true
end

local function feedback(buf, pinfo, tree)
  if buf:len() < 8 or buf(0, 4):uint() ~= magic_feedback then return false end
  local t = tree:add(weft, buf(), "weft feedback")
  t:add(f.feedback, buf())
  local key = buf(5, 1):uint()
  if buf:len() < (key == 0 and 40 or 72) or buf(4, 1):uint() ~= 1 then
    broken(t, buf, "feedback that is too short, or of an unknown version")
    return true
  end
  t:add(f.version, buf(4, 1))
  t:add(f.key, buf(5, 1))
  t:add(f["feedback.level"], buf(6, 1))
  t:add(f["feedback.queue"], buf(8, 4))
  if key ~= 0 then t:add(f.mac, buf(40, 32)) end
  note(pinfo, "feedback", "level " .. buf(6, 1):uint() .. ", queue " .. buf(8, 4):uint() .. " bytes")
  t:add(f["feedback.src"], buf(24, 4))
  t:add(f["feedback.dst"], buf(28, 4))
  t:add(f["feedback.src_port"], buf(32, 2))
  t:add(f["feedback.dst_port"], buf(34, 2))
  t:add(f["feedback.seq"], buf(36, 4))
  return true
end

-- tail is where the entries of a message with a MAC, or without one, end.
local function tail(buf)
  if is_cut(buf) then return buf:len() end
  return buf:len() - (buf(4, 1):uint() ~= 0 and 32 or 0)
end

-- finish says what is behind the entries, which end at a place; nil if they do not fit.
local function finish(buf, t, at, stop)
  if at ~= stop then
    broken(t, buf, "entries that do not fit the message")
  elseif stop < buf:len() then
    t:add(f.mac, buf(stop, 32))
  end
end

-- entries adds the entries of an update, and returns where they end; nil if they do not fit.
local function update_entries(buf, t, at, stop, count)
  for _ = 1, count do
    if at + 22 > stop then return nil end
    local n = buf(at + 20, 2):uint()
    if at + 22 + n > stop then return nil end
    local e = t:add(f["update.entry"], buf(at, 22 + n))
    e:add(f["update.originator"], buf(at, 4))
    e:add(f["update.incarnation"], buf(at + 4, 8))
    e:add(f["update.sequence"], buf(at + 12, 4))
    e:add(f["update.age"], buf(at + 16, 4))
    if n > 0 then e:add(f["update.bitmap"], buf(at + 22, n)) end
    for i = 0, 8 * n - 1 do
      local byte = buf(at + 22 + math.floor(i / 8), 1)
      if math.floor(byte:uint() / 2 ^ (i % 8)) % 2 == 1 then e:add(f["update.port_down"], byte, i) end
    end
    at = at + 22 + n
  end
  return at
end

local function update(buf, pinfo, tree)
  if buf:len() < 4 or buf(0, 2):uint() ~= 0x5755 then return false end
  local t = tree:add(weft, buf(), "weft link-state message")
  t:add(f.update, buf())
  local kind = buf(3, 1):uint()
  if buf:len() < 48 or buf(2, 1):uint() ~= 1 or not update_types[kind] then
    broken(t, buf, "a message that is too short, or of an unknown version or type")
    return true
  end
  t:add(f.version, buf(2, 1))
  t:add(f["update.type"], buf(3, 1))
  t:add(f.key, buf(4, 1))
  t:add(f["update.count"], buf(6, 2))
  t:add(f["update.fabric"], buf(8, 8))
  t:add(f["update.sender"], buf(16, 4))
  t:add(f["update.sender_port"], buf(20, 2))
  t:add(f["update.session"], buf(24, 8))
  t:add(f["update.counter"], buf(32, 8))
  t:add(f["update.heard"], buf(40, 8))
  local stop = tail(buf)
  local at = 48
  if kind == 1 and stop >= 56 then
    t:add(f["update.interval"], buf(48, 4))
    t:add(f["update.multiplier"], buf(52, 1))
    t:add(f["update.down"], buf(53, 1))
    t:add(f["update.leaving"], buf(53, 1))
    at = 56
  elseif kind == 1 then
    at = nil
  else
    at = update_entries(buf, t, at, stop, buf(6, 2):uint())
  end
  finish(buf, t, at, stop)
  note(pinfo, update_types[kind], "from node " .. buf(16, 4):uint() .. " port " .. buf(20, 2):uint() .. ", " .. buf(6, 2):uint() .. " entries")
  return true
end

-- addresses adds the two addresses of a five-tuple, and returns where they end.
local function addresses(buf, e, at, six)
  local n, end_of = six and 16 or 4, six and "6" or ""
  e:add(f["scheduler.src" .. end_of], buf(at, n))
  e:add(f["scheduler.dst" .. end_of], buf(at + n, n))
  return at + 2 * n
end

local function scheduler_entries(buf, t, at, stop, count, placement)
  for _ = 1, count do
    local head = placement and 12 or 14
    if at + head > stop then return nil end
    local flags = buf(at, 1):uint()
    local six, via6 = flags % 2 == 1, math.floor(flags / 2) % 2 == 1
    local size = head + (six and 32 or 8) + (placement and (via6 and 16 or 4) or 0)
    if at + size > stop then return nil end
    local e = t:add(f["scheduler.entry"], buf(at, size))
    e:add(f["scheduler.proto"], buf(at + 1, 1))
    e:add(f["scheduler.src_port"], buf(at + 2, 2))
    e:add(f["scheduler.dst_port"], buf(at + 4, 2))
    if placement then
      e:add(f["scheduler.path"], buf(at + 6, 2))
      e:add(f["scheduler.for"], buf(at + 8, 4))
      local from = addresses(buf, e, at + head, six)
      if via6 then e:add(f["scheduler.via6"], buf(from, 16)) else e:add(f["scheduler.via"], buf(from, 4)) end
    else
      e:add(f["scheduler.rate"], buf(at + 6, 8))
      addresses(buf, e, at + head, six)
    end
    at = at + size
  end
  return at
end

local function scheduler(buf, pinfo, tree)
  if buf:len() < 4 or buf(0, 2):uint() ~= 0x5748 then return false end
  local t = tree:add(weft, buf(), "weft scheduler's message")
  t:add(f.scheduler, buf())
  local kind = buf(3, 1):uint()
  if buf:len() < 64 or buf(2, 1):uint() ~= 1 or not scheduler_types[kind] then
    broken(t, buf, "a message that is too short, or of an unknown version or type")
    return true
  end
  t:add(f.version, buf(2, 1))
  t:add(f["scheduler.type"], buf(3, 1))
  t:add(f.key, buf(4, 1))
  t:add(f["scheduler.count"], buf(6, 2))
  t:add(f["scheduler.fabric"], buf(8, 8))
  t:add(f["scheduler.node"], buf(16, 16))
  t:add(f["scheduler.session"], buf(32, 8))
  t:add(f["scheduler.counter"], buf(40, 8))
  t:add(f["scheduler.heard"], buf(48, 8))
  t:add(f["scheduler.epoch"], buf(56, 8))
  local stop = tail(buf)
  local at = 64
  if kind == 3 then
    at = at + 18
    if at <= stop then
      t:add(f["scheduler.leader"], buf(64, 16))
      t:add(f["scheduler.leader_port"], buf(80, 2))
    end
  else
    at = scheduler_entries(buf, t, at, stop, buf(6, 2):uint(), kind == 4)
  end
  finish(buf, t, at, stop)
  note(pinfo, "scheduler", scheduler_types[kind] .. ", " .. buf(6, 2):uint() .. " entries")
  return true
end

-- inner_length is what an IP header says of its packet's length; nil if it is none.
local function inner_length(buf, at)
  local left = buf:len() - at
  if left < 20 then return nil end
  local family = math.floor(buf(at, 1):uint() / 16)
  if family == 4 then return buf(at + 2, 2):uint() end
  if family == 6 and left >= 40 then return 40 + buf(at + 4, 2):uint() end
  return nil
end

-- tunnel_at is where the inner packet of a datagram begins, and whether it is encrypted; nil if the
-- datagram is none of the tunnel's.
local function tunnel_at(buf)
  if buf:len() < 12 or math.floor(buf(0, 1):uint() / 16) ~= 1 then return nil end
  local flags = buf(0, 1):uint() % 16
  local sealed, has, hidden = flags % 2 == 1, math.floor(flags / 4) % 2 == 1, flags >= 8
  if hidden and not sealed or not has and buf(8, 4):uint() ~= 0 then return nil end
  local at = hidden and 44 or sealed and 40 or 12
  if buf:len() <= at then return nil end
  return at, hidden, sealed
end

local function tunnel(buf, pinfo, tree)
  local at, hidden, sealed = tunnel_at(buf)
  if not at then return false end
  local t = tree:add(weft, buf(0, at), "weft tunnel")
  t:add(f.tunnel, buf(0, at))
  t:add(f.version, buf(0, 1), 1)
  for _, flag in ipairs { "sealed", "partial", "has_feedback", "hidden" } do t:add(f["tunnel." .. flag], buf(0, 1)) end
  t:add(f["tunnel.path"], buf(1, 1))
  t:add(f["tunnel.flowcell"], buf(2, 2))
  t:add(f["tunnel.segment"], buf(2, 2))
  t:add(f["tunnel.number"], buf(4, 4))
  t:add(f["tunnel.feedback"], buf(8, 4))
  if sealed then
    t:add(f.key, buf(12, 1))
    t:add(f["tunnel.salt"], buf(13, 3))
    t:add(f["tunnel.counter"], buf(16, 8))
    t:add(f.mac, buf(24, 16))
  end
  if hidden then
    t:add(f["tunnel.pair"], buf(40, 4))
    t:add(f["tunnel.ciphertext"], buf(at))
    note(pinfo, "tunnel", "path " .. buf(1, 1):uint() .. ", encrypted")
    return true
  end
  if inner_length(buf, at) ~= whole(buf) - at then
    broken(t, buf, "no packet behind the tunnel's header, or more than one")
    return true
  end
  Dissector.get(math.floor(buf(at, 1):uint() / 16) == 4 and "ip" or "ipv6"):call(buf(at):tvb(), pinfo, tree)
  return true
end

-- Wireshark has one dissector for each port.
local function at_port(port, name, dissect)
  local p = Proto("weft_" .. name, "weft " .. name)
  function p.dissector(buf, pinfo, tree)
    if dissect(buf, pinfo, tree) then return buf:len() end
    return 0
  end
  DissectorTable.get("udp.port"):add(port, p)
end
at_port(9337, "sample", sample)
at_port(9338, "update", update)
at_port(9339, "probe", probe)
at_port(9340, "feedback", feedback)
at_port(9341, "scheduler", scheduler)

local tunnel_proto = Proto("weft_tunnel", "weft tunnel")
function tunnel_proto.dissector(buf, pinfo, tree)
  if tunnel(buf, pinfo, tree) then return buf:len() end
  return 0
end
local tunnel_ports = {}
function weft.prefs_changed()
  local udp = DissectorTable.get("udp.port")
  for _, port in ipairs(tunnel_ports) do udp:remove(port, tunnel_proto) end
  tunnel_ports = {}
  for port in weft.prefs.ports:gmatch("%d+") do
    tunnel_ports[#tunnel_ports + 1] = tonumber(port)
    udp:add(tonumber(port), tunnel_proto)
  end
end
-- At any other port a datagram counts as the tunnel's only if a whole packet of the right length is
-- behind the header.
weft:register_heuristic("udp", function(buf, pinfo, tree)
  local at, hidden = tunnel_at(buf)
  if not at or hidden or inner_length(buf, at) ~= whole(buf) - at then return false end
  return tunnel(buf, pinfo, tree)
end)

-- What follows is about headers of other protocols, once these have been dissected.
local function labels(t)
  local dst = ip6_dst()
  if dst then
    local b = dst.range:bytes()
    if b:get_index(0) == 0x5f and b:get_index(1) == 0 then
      for i = 2, 15 do
        local sid = b:get_index(i)
        if sid == 0xfe or sid == 0xfd then
          t():add(f["label.end"], dst.range, sid == 0xfe and "End.DX4" or "End.DT6")
          break
        end
        if sid == 0 then break end
        t():add(f.label, dst.range, sid - 1)
      end
    end
  end
  for _, label in ipairs { mpls() } do
    if label.value >= 16 then t():add(f.label, label.range, label.value - 16) end
  end
end

local function numbering(t)
  local len = last(tcp_len)
  if not len or icmp() or icmp6() then return end
  local data = len.value > 0 or last(tcp_syn).value
  local id, df, tos, proto = last(ip_id), last(ip_df), last(ip_tos), last(ip_proto)
  if id and proto and proto.value == 6 then
    if not df.value then return end
    if math.floor(tos.value / 4) == 9 then
      local v = id.value
      t():add(f["mark.feedback"], id.range, v >= 0x8000)
      t():add(f["mark.tag"], id.range, math.floor(v / 2048) % 16)
      t():add(f["mark.metric"], id.range, math.floor(v / 256) % 8)
      t():add(f["mark.tick"], id.range, math.floor(v / 64) % 4 * 16 + math.floor(v / 2) % 16)
    elseif data and id.value % 64 ~= 63 then
      t():add(f.flowcell, id.range, math.floor(id.value / 64))
      t():add(f.segment, id.range, id.value % 64)
    end
    return
  end
  local flow = last(ip6_flow)
  if flow and data then
    local v = flow.value % 65536
    if v ~= 0 and v % 64 == 0 then
      t():add(f.flowcell, flow.range, math.floor(v / 64))
      t():add(f.segment, flow.range, 0)
    end
  end
end

-- microseconds is a duration as Go writes it.
local units = { ns = 1e-3, ["µs"] = 1, us = 1, ms = 1e3, s = 1e6, m = 60e6, h = 3600e6 }
local function microseconds(text)
  local sum = 0
  for number, unit in text:gmatch("([%d%.]+)([^%d%.]+)") do
    local n = tonumber(number)
    if not n or not units[unit] then return nil end
    sum = sum + n * units[unit]
  end
  return sum
end

local function comments(t)
  for _, c in ipairs { comment() } do
    local rest = c.value:match("^weft:(.*)$")
    if rest then
      for key, value in rest:gmatch("([%w%-]+)=(%S+)") do
        local name = "note." .. key:gsub("-", "_")
        if f[name] then
          if numbers[key] then value = value:match("^%d+$") and tonumber(value) end
          if value and (not numbers[key] or value < 2 ^ 32) then t():add(f[name], value):set_generated() end
          local us = key == "hold" and microseconds(value)
          if us then t():add(f["note.hold_us"], us):set_generated() end
        end
      end
    end
  end
end

local after = Proto("weft_notes", "weft notes")
function after.dissector(buf, _, tree)
  local t
  local function get()
    t = t or tree:add(weft, buf(0, 0), "weft: path, flowcell, notes")
    return t
  end
  labels(get)
  numbering(get)
  comments(get)
end
register_postdissector(after)
