package file

import (
	"errors"
	"io"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"weft/internal/capture"
)

// Read hands the packets of a capture to each, one after the other. What weft has written of
// them in comments is in the records. Captures of other programs have no comments. It skips
// packets of link types other than Ethernet and raw IP, and returns how many these were.
func Read(r io.Reader, each func(*capture.Record) error) (skipped uint64, err error) {
	ng, err := pcapgo.NewNgReader(r, pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		return 0, errors.New("is no pcapng file")
	}
	for {
		b, info, o, err := ng.ReadPacketDataWithOptions()
		switch {
		case errors.Is(err, io.EOF):
			return skipped, nil
		case err != nil:
			return skipped, err
		}
		rec := capture.Record{At: info.Timestamp, Bytes: b, Length: info.Length}
		i, err := ng.Interface(info.InterfaceIndex)
		if err != nil {
			return skipped, err
		}
		rec.Interface = i.Name
		switch i.LinkType {
		case layers.LinkTypeEthernet:
			rec.Link = capture.LinkEthernet
		case layers.LinkTypeRaw, layers.LinkTypeIPv4, layers.LinkTypeIPv6:
		default:
			skipped++
			continue
		}
		rec.Out = o.Flags != nil && o.Flags.Direction == pcapgo.NgEpbFlagDirectionOutbound
		for _, c := range o.Comments {
			rec.Restore(c)
		}
		if err := each(&rec); err != nil {
			return skipped, err
		}
	}
}
