package link

import "errors"

// maxParts is how many parts WriteParts takes: IOV_MAX less two for headers.
const maxParts = 1022

var errParts = errors.New("link: WriteParts wants 1 to 1022 parts, the first with a VnetHeader and the packet's IP and TCP headers")

func partsLen(parts [][]byte) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}

func validParts(parts [][]byte) bool {
	return len(parts) > 0 && len(parts) <= maxParts && len(parts[0]) > VnetHeaderLen
}
