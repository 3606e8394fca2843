package foreign

import (
	"bytes"
	"regexp"
	"strings"
)

// The formats of files of Handle servers.
const (
	JSON   Format = "json"   // {"homedPrefixes":[...],"handleRecords":{...}}, or a record a line
	Dump   Format = "dump"   // a text dump of Berkeley DB: handles-*.dump, nas-*.dump
	Log    Format = "txnlog" // dbtxns.log, which is replayed over a dump
	JDB    Format = "jdb"    // handles.jdb, nas.jdb of servers before 7
	DBList Format = "dblist" // what hdl-dblist -v prints
	SQL    Format = "sql"    // of pg_dump or mysqldump; a table of it may also be CSV
	Batch  Format = "batch"  // for hdl-genericbatch
)

// openHandle opens files of a Handle server. If one of them has what is known of a record in several
// places, all are sorted together.
func openHandle(s *Source, texts []*window) (parts []part) {
	for i, w := range texts {
		switch s.kinds[i] {
		case Log, SQL, CSV, Batch:
			return []part{newFolded(s, texts)}
		case JSON:
			parts = append(parts, &jsonPart{s: s, w: w})
		case DBList:
			parts = append(parts, &dbListPart{jsonPart: jsonPart{s: s, w: w}})
		case JDB:
			parts = append(parts, &jdbPart{s: s, w: w, file: s.files[i]})
		default:
			parts = append(parts, &dumpPart{s: s, w: w})
		}
	}
	return parts
}

// detectHandle finds out what a file of a Handle server is by its beginning.
func detectHandle(head []byte) Format {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	text := bytes.TrimLeft(head, " \t\r\n")
	for len(text) > 0 && text[0] == '#' { // remarks of a file of rejected rows
		_, rest, _ := bytes.Cut(text, []byte("\n"))
		text = bytes.TrimLeft(rest, " \t\r\n")
	}
	switch {
	case len(text) == 0:
		return Batch // of nothing
	case text[0] == '{':
		return JSON
	case bytes.HasPrefix(head, []byte(jdbMark)):
		return JDB
	case bytes.HasPrefix(text, []byte("VERSION=")):
		return Dump
	case head[0] == logMark && len(head) > 1 && head[1] <= actionDeleteAll:
		return Log
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	word, rest, _ := strings.Cut(strings.TrimSpace(string(first)), " ")
	if isCommand(strings.ToUpper(word)) && !isStatement.MatchString(rest) {
		return Batch
	}
	if bytes.HasPrefix(text, []byte("--")) || bytes.HasPrefix(text, []byte("/*")) || bytes.HasPrefix(text, []byte("\\restrict")) {
		return SQL
	}
	switch strings.ToUpper(word) {
	case "INSERT", "COPY", "SET", "CREATE", "DROP", "LOCK", "SELECT", "BEGIN", "START":
		return SQL
	}
	if isTable(first) {
		return CSV
	}
	if values := bytes.TrimLeft(text[len(first):], " \t\r\n"); bytes.IndexByte(first, '/') > 0 && bytes.HasPrefix(values, []byte("[")) {
		return DBList
	}
	return unknown
}

// isHandle reports whether a beginning is that of a file of a Handle server and of no other system.
func isHandle(head []byte) bool {
	switch detectHandle(head) {
	case JSON:
		for _, mark := range []string{`"homedPrefixes"`, `"handleRecords"`, `"handle"`} {
			if bytes.Contains(head, []byte(mark)) {
				return true
			}
		}
		return false
	case SQL:
		lower := bytes.ToLower(head)
		return bytes.Contains(lower, []byte("handles")) || bytes.Contains(lower, []byte("admin_read"))
	case Dump:
		return !isNOID(head)
	}
	return len(bytes.TrimSpace(head)) > 0
}

// isStatement finds what follows CREATE in SQL, where a batch file has a handle.
var isStatement = regexp.MustCompile(`(?i)^(?:TEMP(?:ORARY)? |UNLOGGED |UNIQUE )?(?:TABLE|DATABASE|SCHEMA|EXTENSION|SEQUENCE|INDEX|ROLE|USER|TYPE|FUNCTION)(?: |$)`)
