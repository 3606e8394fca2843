package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stele-id/stele/wire/hdl"
)

// foreignFile is a file of another system, with names that its import makes records of.
type foreignFile struct {
	name  string
	args  []string // of import
	write func(w *bufio.Writer, list []int)
}

// foreignFiles returns the files that imports are measured with, one a format.
func foreignFiles() []foreignFile {
	return []foreignFile{
		{"EZID's ANVL", []string{"--from", "ezid"}, writeEZIDText},
		{"EZID's CSV", []string{"--from", "ezid"}, writeEZIDTable},
		{"EZID's XML", []string{"--from", "ezid"}, writeEZIDElements},
		{"DataCite's JSON, one DOI a line", []string{"--from", "datacite"}, writeDataCite},
		{"DataCite's JSON, as its API lists DOIs", []string{"--from", "datacite"}, writeDataCiteList},
		{"DataCite's yearly data file", []string{"--from", "datacite"}, inArchive("dois/part_%04d.jsonl.gz", writeDataCite)},
		{"Crossref's XML", []string{"--from", "crossref"}, writeCrossref},
		{"Crossref's JSON, one work a line", []string{"--from", "crossref"}, writeCrossrefWorks},
		{"Crossref's public data file", []string{"--from", "crossref"}, inArchive("%d.jsonl.gz", writeCrossrefWorks)},
		{"PURLZ's XML", []string{"--from", "purlz", "--prefix", "https://purl.org"}, writePURLZ},
		{"PURLZ's CSV", []string{"--from", "purlz", "--prefix", "https://purl.org"}, writePURLZTable},
		{"Shlink's CSV", []string{"--from", "shlink", "--prefix", "ark:12345/"}, writeShlink},
		{"YOURLS's CSV", []string{"--from", "yourls", "--prefix", "ark:12345/"}, writeYOURLS},
		{"Kutt's CSV", []string{"--from", "kutt", "--prefix", "ark:12345/"}, writeKutt},
		{"Kutt's JSON", []string{"--from", "kutt", "--prefix", "ark:12345/"}, writeKuttLinks},
		{"a Handle server's JSON", []string{"--from", "handle"}, writeHandles},
		{"a Handle server's SQL", []string{"--from", "handle"}, writeHandleSQL},
		{"a Handle server's CSV", []string{"--from", "handle"}, writeHandleTable},
		{"a Handle server's dump of Berkeley DB", []string{"--from", "handle"}, writeHandleDump},
		{"hdl-dblist -v", []string{"--from", "handle"}, writeHandleList},
		{"a batch of handles", []string{"--from", "handle"}, writeHandleBatch},
		{"a dump of Noid", []string{"--from", "noid"}, writeNOID},
		{"noid dbinfo dump", []string{"--from", "noid"}, writeNOIDInfo},
		{"egg iddump", []string{"--from", "noid"}, writeEggIDs},
		{"arklet's CSV", []string{"--from", "arklet"}, writeArklet},
		{"arklet's dump of PostgreSQL", []string{"--from", "arklet"}, writeArkletDump},
		{"purl.org's JSON", []string{"--from", "purl.org"}, writePURLs},
		{"a zone of the DNS", []string{"--from", "zone"}, writeZone},
	}
}

// writeEZIDText writes a batch download of EZID.
func writeEZIDText(w *bufio.Writer, list []int) {
	for _, i := range list {
		who, what, when := describe(i)
		fmt.Fprintf(w, ":: ark:/12345/%s\n_created: 1700000000\n_updated: 1700000100\n_owner: ana\n_ownergroup: archive\n_profile: erc\n_status: public\n_export: yes\n_target: %s\nerc.who: %s\nerc.what: %s\nerc.when: %s\n\n",
			benchName(i), itemAt(i), who, what, when)
	}
}

// writeEZIDTable writes the same as CSV.
func writeEZIDTable(w *bufio.Writer, list []int) {
	fmt.Fprintln(w, "_id,_created,_updated,_owner,_ownergroup,_profile,_status,_export,_target,erc.who,erc.what,erc.when")
	for _, i := range list {
		who, what, when := describe(i)
		fmt.Fprintf(w, "ark:/12345/%s,1700000000,1700000100,ana,archive,erc,public,yes,%s,\"%s\",\"%s\",%s\n", benchName(i), itemAt(i), who, what, when)
	}
}

// writeEZIDElements writes the same as XML.
func writeEZIDElements(w *bufio.Writer, list []int) {
	fmt.Fprint(w, `<?xml version="1.0" encoding="utf-8"?>`+"\n<records>")
	for _, i := range list {
		who, what, when := describe(i)
		fmt.Fprintf(w, `<record identifier="ark:/12345/%s">`, benchName(i))
		for _, e := range [][2]string{{"_created", "1700000000"}, {"_updated", "1700000100"}, {"_owner", "ana"}, {"_ownergroup", "archive"}, {"_profile", "erc"}, {"_status", "public"}, {"_export", "yes"},
			{"_target", itemAt(i)}, {"erc.who", who}, {"erc.what", what}, {"erc.when", when}} {
			fmt.Fprintf(w, `<element name="%s">%s</element>`, e[0], e[1])
		}
		fmt.Fprint(w, "</record>")
	}
	fmt.Fprintln(w, "</records>")
}

// writeCrossref writes a deposit of reports at Crossref.
func writeCrossref(w *bufio.Writer, list []int) {
	fmt.Fprintln(w, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<doi_batch xmlns="http://www.crossref.org/schema/5.3.0" version="5.3.0"><head><doi_batch_id>b1</doi_batch_id></head><body>`)
	for _, i := range list {
		who, what, when := describe(i)
		surname, given, _ := strings.Cut(who, ", ")
		fmt.Fprintf(w, `<posted_content type="report"><contributors><person_name sequence="first" contributor_role="author"><given_name>%s</given_name><surname>%s</surname></person_name></contributors>`+
			`<titles><title>%s</title></titles><posted_date><year>%s</year></posted_date><doi_data><doi>10.5072/%s</doi><resource>%s</resource></doi_data></posted_content>`+"\n",
			given, surname, what, when, benchName(i), itemAt(i))
	}
	fmt.Fprintln(w, "</body></doi_batch>")
}

// writePURLZ writes a batch of PURLZ.
func writePURLZ(w *bufio.Writer, list []int) {
	fmt.Fprintln(w, `<?xml version="1.0" encoding="UTF-8"?>`+"\n<purls>")
	for _, i := range list {
		fmt.Fprintf(w, ` <purl id="/x/%s" type="302"><maintainers><uid>ana</uid></maintainers><target url="%s"/></purl>`+"\n", benchName(i), itemAt(i))
	}
	fmt.Fprintln(w, "</purls>")
}

// writeDataCite writes DOIs as the parts of DataCite's yearly data file have them.
func writeDataCite(w *bufio.Writer, list []int) { writeDataCiteBetween(w, list, "\n") }

func writeDataCiteBetween(w *bufio.Writer, list []int, between string) {
	for k, i := range list {
		if k > 0 {
			_, _ = w.WriteString(between) // the error is that of Flush
		}
		who, what, when := describe(i)
		fmt.Fprintf(w, `{"id":"10.5072/%s","type":"dois","attributes":{"doi":"10.5072/%s","state":"findable","creators":[{"name":"%s","nameType":"Personal"}],"titles":[{"title":"%s"}],"publisher":"Archive",`+
			`"publicationYear":%s,"types":{"resourceTypeGeneral":"Text"},"url":"%s","created":"2023-11-14T22:13:20.000Z","updated":"2023-11-14T22:13:20.000Z"}}`,
			benchName(i), benchName(i), who, what, when, itemAt(i))
	}
	fmt.Fprintln(w)
}

// writeDataCiteList writes the same as a page of DataCite's REST API.
func writeDataCiteList(w *bufio.Writer, list []int) {
	fmt.Fprint(w, `{"data":[`)
	writeDataCiteBetween(w, list, ",")
	fmt.Fprintln(w, `],"meta":{}}`)
}

// archivePart is how many names a file of an archive has.
const archivePart = 10_000

// inArchive returns what writes names into compressed files of a tar archive, whose names have a number.
func inArchive(name string, write func(*bufio.Writer, []int)) func(*bufio.Writer, []int) {
	return func(w *bufio.Writer, list []int) {
		archive := tar.NewWriter(w)
		number := 0
		for part := range slices.Chunk(list, archivePart) {
			var text bytes.Buffer
			packed := gzip.NewWriter(&text)
			plain := bufio.NewWriter(packed)
			write(plain, part)
			err := errors.Join(plain.Flush(), packed.Close(), archive.WriteHeader(&tar.Header{Name: fmt.Sprintf(name, number), Mode: 0o644, Size: int64(text.Len())}))
			_, _ = archive.Write(text.Bytes()) // the errors are those of Flush
			if number++; err != nil {
				return
			}
		}
		_ = archive.Close() // its error, too
	}
}

// writeShlink writes an export of Shlink.
func writeShlink(w *bufio.Writer, list []int) {
	fmt.Fprintln(w, "Created at,Short code,Long URL,Title,Tags,Visits")
	for _, i := range list {
		_, what, when := describe(i)
		fmt.Fprintf(w, "2023-11-14T22:13:20+00:00,%s,%s,\"%s\",%s,7\n", benchName(i), itemAt(i), what, when)
	}
}

// writeNOID writes a database of Noid as db_dump -p does.
func writeNOID(w *bufio.Writer, list []int) {
	fmt.Fprint(w, "VERSION=3\nformat=print\ntype=btree\ndb_pagesize=4096\nHEADER=END\n")
	for _, i := range list {
		name := "12345/" + benchName(i)
		who, what, when := describe(i)
		fmt.Fprintf(w, " %s\\09:/c\n i|20231114221320|ana|1\n %s\\09goto\n %s\n %s\\09what\n %s\n %s\\09when\n %s\n %s\\09who\n %s\n", name, name, itemAt(i), name, what, name, when, name, who)
	}
	fmt.Fprintln(w, "DATA=END")
}

// writePURLs writes the PURLs of a domain of purl.org, without their history: JSONL has none, either.
func writePURLs(w *bufio.Writer, list []int) {
	fmt.Fprint(w, `{"name": "/x", "created": "2009-07-22 17:44:37", "maintainer": {"userid": "ana"}, "purls": [`)
	for k, i := range list {
		if k > 0 {
			_ = w.WriteByte(',') // the error is that of Flush
		}
		fmt.Fprintf(w, "\n"+`  {"type": "302", "target": "%s", "name": "/x/%s", "created": "2009-07-22 19:36:26", "modified": "2012-11-16 14:25:18"}`, itemAt(i), benchName(i))
	}
	fmt.Fprintln(w, "\n]}")
}

// writeZone writes a zone with a rule for each name.
func writeZone(w *bufio.Writer, list []int) {
	fmt.Fprintf(w, "$ORIGIN %s\n$TTL 3600\n@ IN SOA ns1 hostmaster 1 3600 600 1209600 300\n@ IN NS ns1\nns1 IN A 192.0.2.1\n", benchZone)
	for _, i := range list {
		fmt.Fprintf(w, "%s IN NAPTR 100 10 \"u\" \"http+N2L\" \"!^%s$!%s!\" .\n", ownerOf(i), publishedName(i), publishedAt(i))
	}
}

// writeHandleSQL writes the table of a Handle server as pg_dump does.
func writeHandleSQL(w *bufio.Writer, list []int) {
	fmt.Fprintln(w, "-- PostgreSQL database dump\nCREATE TABLE public.handles (handle bytea, idx integer, type bytea, data bytea, ttl_type smallint, ttl integer, \"timestamp\" integer);\n"+
		"COPY public.handles (handle, idx, type, data, ttl_type, ttl, \"timestamp\") FROM stdin;")
	for _, i := range list {
		fmt.Fprintf(w, "\\\\x%x\t1\t\\\\x55524c\t\\\\x%x\t0\t86400\t1700000000\n", "20.500.12345/"+strings.ToUpper(benchName(i)), itemAt(i))
	}
	fmt.Fprintln(w, `\.`)
}

// writeHandleBatch writes a batch file for hdl-genericbatch.
func writeHandleBatch(w *bufio.Writer, list []int) {
	for _, i := range list {
		fmt.Fprintf(w, "CREATE 20.500.12345/%s\n1 URL 86400 1110 UTF8 %s\n\n", strings.ToUpper(benchName(i)), itemAt(i))
	}
}

// writeNOIDInfo writes the same database as writeNOID does, as the program itself prints it.
func writeNOIDInfo(w *bufio.Writer, list []int) {
	for _, i := range list {
		name := "12345/" + benchName(i)
		who, what, when := describe(i)
		fmt.Fprintf(w, "%s\t:/c: i|20231114221320|ana|1\n%[1]s\tgoto: %s\n%[1]s\twhat: %s\n%[1]s\twhen: %s\n%[1]s\twho: %s\n", name, itemAt(i), what, when, who)
	}
}

// writeArklet writes the table of arklet.
func writeArklet(w *bufio.Writer, list []int) {
	fmt.Fprintln(w, "ark,naan_id,shoulder,assigned_name,url,metadata,commitment,created_at,updated_at")
	for _, i := range list {
		fmt.Fprintf(w, "12345/%s,12345,/,%[1]s,%s,,permanent,2023-11-14 22:13:20+00,2023-11-14 22:13:20+00\n", benchName(i), itemAt(i))
	}
}

// writeCrossrefWorks writes works of Crossref's REST API.
func writeCrossrefWorks(w *bufio.Writer, list []int) {
	for _, i := range list {
		who, what, when := describe(i)
		surname, given, _ := strings.Cut(who, ", ")
		fmt.Fprintf(w, `{"DOI":"10.5072/%s","type":"report","title":["%s"],"author":[{"given":"%s","family":"%s"}],"publisher":"Archive","issued":{"date-parts":[[%s]]},"resource":{"primary":{"URL":"%s"}}}`+"\n",
			benchName(i), what, given, surname, when, itemAt(i))
	}
}

// writePURLZTable writes PURLs as pypurlz does.
func writePURLZTable(w *bufio.Writer, list []int) {
	fmt.Fprintln(w, "domain,id,target")
	for _, i := range list {
		fmt.Fprintf(w, "/x,/x/%s,%s\n", benchName(i), itemAt(i))
	}
}

// writeYOURLS writes the table of YOURLS.
func writeYOURLS(w *bufio.Writer, list []int) {
	fmt.Fprintln(w, "keyword,url,title,timestamp,ip,clicks")
	for _, i := range list {
		_, what, _ := describe(i)
		fmt.Fprintf(w, "%s,%s,\"%s\",2023-11-14 22:13:20,,7\n", benchName(i), itemAt(i), what)
	}
}

// writeKutt writes the table of Kutt.
func writeKutt(w *bufio.Writer, list []int) {
	fmt.Fprintln(w, "address,target,description,created_at,visit_count")
	for _, i := range list {
		_, what, _ := describe(i)
		fmt.Fprintf(w, "%s,%s,\"%s\",2023-11-14T22:13:20Z,7\n", benchName(i), itemAt(i), what)
	}
}

// writeKuttLinks writes links as the API of Kutt does.
func writeKuttLinks(w *bufio.Writer, list []int) {
	fmt.Fprintf(w, `{"limit":%d,"skip":0,"total":%[1]d,"data":[`, len(list))
	for k, i := range list {
		if k > 0 {
			_ = w.WriteByte(',') // the error is that of Flush
		}
		_, what, _ := describe(i)
		fmt.Fprintf(w, `{"address":"%s","banned":false,"created_at":"2023-11-14T22:13:20.000Z","target":"%s","description":"%s","updated_at":"2023-11-14T22:13:20.000Z","visit_count":7}`, benchName(i), itemAt(i), what)
	}
	fmt.Fprintln(w, "]}")
}

// writeHandleTable writes the table of a Handle server as COPY does with CSV HEADER.
func writeHandleTable(w *bufio.Writer, list []int) {
	fmt.Fprintln(w, "handle,idx,type,data,ttl_type,ttl,timestamp")
	for _, i := range list {
		fmt.Fprintf(w, "\\x%x,1,\\x55524c,\\x%x,0,86400,1700000000\n", "20.500.12345/"+strings.ToUpper(benchName(i)), itemAt(i))
	}
}

// writeHandleDump writes the dump that a Handle server makes at a checkpoint: names, and their values as it stores them.
func writeHandleDump(w *bufio.Writer, list []int) {
	fmt.Fprint(w, "VERSION=3\nformat=bytevalue\ntype=btree\ndupsort=0\nHEADER=END\n")
	for _, i := range list {
		value := hdl.Value{Index: 1, Type: []byte("URL"), Data: []byte(itemAt(i)), TTL: 86400, Timestamp: 1700000000, Permissions: hdl.AdminRead | hdl.AdminWrite | hdl.PublicRead}
		text := value.Append(nil)
		fmt.Fprintf(w, " %x\n 00000001%08x%x\n", "20.500.12345/"+strings.ToUpper(benchName(i)), len(text), text)
	}
	fmt.Fprintln(w, "DATA=END")
}

// writeHandleList writes handles as hdl-dblist does.
func writeHandleList(w *bufio.Writer, list []int) {
	for _, i := range list {
		fmt.Fprintf(w, "20.500.12345/%s\n"+`[
  {
    "index": 1,
    "type": "URL",
    "data": {
      "format": "string",
      "value": "%s"
    },
    "ttl": 86400,
    "timestamp": "2023-11-14T22:13:20Z"
  }
]`+"\n\n", strings.ToUpper(benchName(i)), itemAt(i))
	}
}

// writeEggIDs writes names as egg does.
func writeEggIDs(w *bufio.Writer, list []int) {
	for _, i := range list {
		name := "ark:/12345/" + benchName(i)
		who, what, when := describe(i)
		fmt.Fprintf(w, "# id: %s\n# hexid: %[1]x\n%x: %x\n%x: %x\n%x: %x\n%x: %x\n# elements bound under %[1]s: 4\n\n", name, "_t", itemAt(i), "what", what, "when", when, "who", who)
	}
}

// writeArkletDump writes the table of arklet as pg_dump does.
func writeArkletDump(w *bufio.Writer, list []int) {
	fmt.Fprintln(w, "--\n-- PostgreSQL database dump\n--\nCOPY public.ark_ark (ark, naan_id, shoulder, assigned_name, url, metadata, commitment, created_at, updated_at) FROM stdin;")
	for _, i := range list {
		fmt.Fprintf(w, "12345/%s\t12345\t/\t%[1]s\t%s\t\tpermanent\t2023-11-14 22:13:20+00\t2023-11-14 22:13:20+00\n", benchName(i), itemAt(i))
	}
	fmt.Fprintln(w, `\.`)
}
