package hdl

// Files by which the reference's clients are told where handles are: root_info and resolver_service hold the values of
// the root's record, local_info holds sites for prefixes.

// ParseRootInfo reads the values of a root_info or resolver_service file.
func ParseRootInfo(b []byte) ([]Value, error) {
	r := newReader("root_info file", InvalidValue, b)
	list := r.str("values")
	if err := r.end(); err != nil {
		return nil, err
	}
	return ParseValueList(list, nil)
}

// AppendRootInfo appends a root_info file.
func AppendRootInfo(dst []byte, values []Value) []byte {
	return appendStr(dst, AppendValues(nil, values))
}

// LocalSite is a site of a local_info file, and the prefixes (0.NA/...) for which it is asked.
type LocalSite struct {
	Prefixes []string
	Site     Site
}

// minLocalSite is the least octets of a LocalSite.
const minLocalSite = 4 + 4

// ParseLocalInfo reads a local_info file.
func ParseLocalInfo(b []byte) ([]LocalSite, error) {
	r := newReader("local_info file", InvalidValue, b)
	if total := r.u32("length"); r.err == nil && uint64(total) != uint64(len(b)) {
		r.fail(InvalidValue, "hdl.local-info-length", "the local_info file says that it has {said} octets, and has {octets}", total, len(b))
	}
	sites := make([]LocalSite, r.count("sites", minLocalSite, maxCount, r.code))
	for i := range sites {
		prefixes := r.strings(nil, "prefixes of a site")
		site := r.str("site")
		if r.err != nil {
			return nil, r.err
		}
		for _, p := range prefixes {
			sites[i].Prefixes = append(sites[i].Prefixes, string(p))
		}
		var err error
		if sites[i].Site, err = ParseSite(site); err != nil {
			return nil, err
		}
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return sites, nil
}

// AppendLocalInfo appends a local_info file.
func AppendLocalInfo(dst []byte, sites []LocalSite) []byte {
	list := appendU32(nil, uint32(len(sites)))
	for i := range sites {
		list = appendU32(list, uint32(len(sites[i].Prefixes)))
		for _, p := range sites[i].Prefixes {
			list = appendStr(list, p)
		}
		list = appendStr(list, sites[i].Site.Append(nil))
	}
	return append(appendU32(dst, uint32(4+len(list))), list...) // the length counts itself
}
