package foreign

import "slices"

// System is another system whose files are imported.
type System struct {
	Name    string   // as --from has it
	Title   string   // what it is, for people
	Formats []Format // of its files

	// What of [Options] its files have a use for.
	Grants  bool // rights: Options.Admins
	Secrets bool // Options.Secrets
	Names   bool // names that are not identifiers in the files: Options.Prefix
	Tables  bool // names of tables and columns: Options.Map
	Spaces  bool // Options.Namespaces makes namespaces of the names of records, since the files list none

	// Tree says which files of a folder are read, by their names without folders; nil if files are read one by one.
	// Loose says that the folders of such a file say nothing about its names.
	Tree  func(base string) bool
	Loose bool

	// recognise returns the format of a file by its beginning; unknown if it is none of the system's.
	recognise func(head []byte) Format

	// claims reports whether a beginning that is recognised can't be that of another system's file: a dump
	// of Berkeley DB, for instance, may be that of several.
	claims func(head []byte) bool

	// open returns what is read. Source.kinds has the formats of the files, in their order.
	open func(s *Source, texts []*window) []part
}

// Systems returns all systems, in the order in which a file is held against them.
func Systems() []*System {
	return []*System{
		{
			Name: "arklet", Title: "arklet", Formats: []Format{CSV, Copied},
			Names: true, Tables: true, Spaces: true, recognise: detectArklet, claims: isArklet, open: openArklet,
		},
		{
			Name: "ezid", Title: "EZID", Formats: []Format{EZIDText, CSV, EZIDXML},
			Tables: true, Spaces: true, recognise: detectEZID, claims: isEZID, open: openEZID,
		},
		tableSystem("shlink", "Shlink", shlinkTable()),
		tableSystem("yourls", "YOURLS", yourlsTable()),
		{
			Name: "kutt", Title: "Kutt", Formats: []Format{CSV, LinksJSON},
			Names: true, Tables: true, Spaces: true, recognise: detectKutt, claims: isKutt, open: openKutt,
		},
		{Name: "purl.org", Title: "purl.org", Formats: []Format{PURLJSON}, Names: true, recognise: detectPURLOrg, claims: isPURLOrg, open: openPURLOrg},
		{
			Name: "purlz", Title: "PURLZ", Formats: []Format{PURLXML, CSV, PURLJSON},
			Names: true, Tables: true, recognise: detectPURLZ, claims: isPURLZ, open: openPURLZ,
		},
		{
			Name: "datacite", Title: "DataCite", Formats: []Format{DataCiteJSON, DataCiteLines, DataCiteTar},
			recognise: detectDataCite, claims: isDataCite, open: openDataCite,
		},
		{
			Name: "crossref", Title: "Crossref", Formats: []Format{CrossrefXML, CrossrefJSON, CrossrefTar},
			recognise: detectCrossref, claims: isCrossref, open: openCrossref,
		},
		{
			Name: "zone", Title: "a DNS zone", Formats: []Format{ZoneFile},
			Names: true, recognise: detectZone, claims: isZone, open: openZone,
		},
		{
			Name: "noid", Title: "Noid, Nog or egg", Formats: []Format{NOIDDump, NOIDInfo, EggIDs, NOIDJSON},
			Grants: true, Names: true, recognise: detectNOID, claims: isNOID, open: openNOID,
		},
		{
			Name: "handle", Title: "a Handle server", Formats: []Format{JSON, Dump, Log, JDB, DBList, SQL, CSV, Batch},
			Grants: true, Secrets: true, Tables: true, recognise: detectHandle, claims: isHandle, open: openHandle,
		},
		{
			Name: "w3id", Title: "w3id.org, or Apache httpd", Formats: []Format{W3IDFile, W3IDTree},
			Names: true, Tree: isW3IDFile, recognise: detectW3ID, claims: isW3ID, open: openW3ID,
		},
		{
			Name: "obo", Title: "the OBO Foundry", Formats: []Format{OBOFile, OBOTree},
			Names: true, Tree: isOBOFile, Loose: true, recognise: detectOBO, claims: isOBO, open: openOBO,
		},
	}
}

// tableSystem returns a system whose files are tables of names that are not identifiers.
func tableSystem(name, title string, k *tableKind) *System {
	recognise, claims := csvOnly(k)
	return &System{Name: name, Title: title, Formats: []Format{CSV}, Names: true, Tables: true, Spaces: true, recognise: recognise, claims: claims, open: openTable(k)}
}

// SystemNamed returns the system of a name; nil if there is none.
func SystemNamed(name string) *System {
	all := Systems()
	if i := slices.IndexFunc(all, func(s *System) bool { return s.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// systemOf returns the system of a name, or, if the name is Auto, the first whose files begin so, with the
// format; nil if there is none.
func systemOf(name string, head []byte) (*System, Format) {
	if name != string(Auto) {
		return SystemNamed(name), unknown
	}
	for _, s := range Systems() {
		if kind := s.recognise(head); kind != unknown && s.claims(head) {
			return s, kind
		}
	}
	return nil, unknown
}
