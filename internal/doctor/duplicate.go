package doctor

// askDuplicate finds another machine that has this host's address, too: it takes what is sent to
// this one.
func askDuplicate(f *Facts) (all []Finding, well string) {
	if f.Host == nil {
		return nil, f.told("")
	}
	if f.Twin != "" {
		all = append(all, wrong(explains, "address "+f.Host.Address+" is a duplicate: another machine, of hardware address "+f.Twin+", also has it, and takes packets for this host",
			"find who has that hardware address (bridge fdb, ip neigh at the next switch), and take the address away there"))
	}
	return all, "nobody else answers for this host's address"
}
