package foreign_test

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
)

// jdbFile writes records as an old Handle server stores them (specification, section 6): the blocks that continue a
// record stand before its first one.
func jdbFile(entries int, keys, data []string) []byte {
	b := append([]byte("\x00\x0cJDBHash v0.1"), 0, 0, 0, 0)
	binary.BigEndian.PutUint32(b[14:], uint32(entries))
	b = append(b, make([]byte, 8*entries)...)
	block := func(head, text []byte) uint64 {
		at := uint64(len(b))
		b = append(append(b, head...), text...)
		b = append(b, make([]byte, int(at)+1024-len(b))...)
		return at
	}
	for i, key := range keys {
		text := []byte(key + data[i])
		continuation := uint64(0)
		if len(text) > 1007 {
			// The last part first, so that each block can name the one that continues it.
			var parts [][]byte
			for rest := text[999:]; len(rest) > 0; {
				n := len(rest)
				if n > 1019 {
					n = 1011
				}
				parts, rest = append(parts, rest[:n]), rest[n:]
			}
			remains := 0
			for k := len(parts) - 1; k >= 0; k-- {
				remains += len(parts[k])
				head := binary.BigEndian.AppendUint32([]byte{2}, uint32(remains))
				if k < len(parts)-1 {
					head = binary.BigEndian.AppendUint64(head, continuation)
				}
				continuation = block(head, parts[k])
			}
			text = text[:999]
		}
		sum := md5.Sum([]byte(key))
		entry := 18 + 8*(int(binary.BigEndian.Uint32(sum[12:])&^(1<<31))%entries)
		head := binary.BigEndian.AppendUint32([]byte{1}, uint32(len(key)))
		head = binary.BigEndian.AppendUint32(head, uint32(len(data[i])))
		head = append(head, b[entry:entry+8]...) // the chain so far
		if continuation != 0 {
			head = binary.BigEndian.AppendUint64(head, continuation)
		}
		at := block(head, text)
		binary.BigEndian.PutUint64(b[entry:], at)
	}
	return b
}

// storedValues returns the values that the dump of testdata has.
func storedValues(t testing.TB) string {
	t.Helper()
	whole, err := os.ReadFile("testdata/handles.dump")
	if err != nil {
		t.Fatal(err)
	}
	data, err := hex.DecodeString(strings.TrimSpace(strings.Split(string(whole), "\n")[6]))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// jdbFiles are handles.jdb and nas.jdb of the data set of the reference implementation.
func jdbFiles(t testing.TB) (handles, nas []byte) {
	t.Helper()
	return jdbFile(5000, []string{"20.500.99999/ABC-1"}, []string{storedValues(t)}), jdbFile(1000, []string{"0.NA/20.500.99999"}, []string{""})
}

// listing is what hdl-dblist -v prints of the data set.
const listing = `20.500.99999/ABC-1
[
  {
    "index": 1,
    "type": "URL",
    "data": {
      "format": "string",
      "value": "https://example.org/1"
    },
    "ttl": 86400,
    "timestamp": "2023-11-14T22:13:20Z"
  },
  {
    "index": 2,
    "type": "EMAIL",
    "data": {
      "format": "string",
      "value": "a@example.org"
    },
    "ttl": 86400,
    "timestamp": "2023-11-14T22:13:20Z",
    "references": [
      {
        "handle": "20.500.99999/X\tY%é",
        "index": 7
      }
    ]
  }
]

`

// tableCSV and prefixesCSV are the tables of the data set as PostgreSQL writes them with COPY ... TO STDOUT CSV HEADER.
var (
	tableCSV = "handle,idx,type,data,ttl_type,ttl,timestamp,refs,admin_read,admin_write,pub_read,pub_write\n" +
		fmt.Sprintf("\\x%x,1,\\x%x,\\x%x,0,86400,1700000000,,t,t,t,f\n", "20.500.99999/ABC-1", "URL", "https://example.org/1") +
		fmt.Sprintf("\\x%x,2,\\x%x,\\x%x,0,86400,1700000000,7:20.500.99999/X\\tY%%0025%%00E9,t,t,t,f\n", "20.500.99999/ABC-1", "EMAIL", "a@example.org")
	prefixesCSV = fmt.Sprintf("na\n\\x%x\n", "0.NA/20.500.99999")
)

// The bytes of a real handles.jdb are those that the test writes, so that what it reads is what a server has.
func TestJDBVector(t *testing.T) {
	// Values of the recording: URL, and a TXT of 1500 octets.
	value := func(index int, kind, text string) string {
		v := fmt.Sprintf("%08x6553f10000000151800e%08x%x%08x%x00000000", index, len(kind), kind, len(text), text)
		return fmt.Sprintf("%08x%s", len(v)/2, v)
	}
	data, err := hex.DecodeString("00000002" + value(1, "URL", "https://example.org/1") + value(2, "TXT", strings.Repeat("x", 1500)))
	if err != nil {
		t.Fatal(err)
	}
	b := jdbFile(5000, []string{"20.500.99999/ABC-1"}, []string{string(data)})
	recorded, err := os.ReadFile("testdata/storage.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(recorded)) {
		for begin, at := range map[string]int{"header = ": 0, "entry 1666 at offset 13346 = ": 13346, "start block at 41042 (first 120 octets) = ": 41042, "continuation block at 40018 (first 20 octets) = ": 40018} {
			if digits, ok := strings.CutPrefix(strings.TrimSpace(line), begin); ok {
				if got := hex.EncodeToString(b[at : at+len(digits)/2]); got != digits {
					t.Errorf("%s\ngot  %s\nwant %s", begin, got, digits)
				}
				found++
			}
		}
	}
	if found != 4 {
		t.Errorf("%d of 4 recordings", found)
	}
	records, _ := good(t, foreign.Options{}, b)
	if len(records) != 1 || len(records[0].Values) != 2 || string(records[0].Values[1].Data) != strings.Repeat("x", 1500) {
		t.Errorf("got %+v", records)
	}
}

// Chains, records of many blocks, a file that can be read at any place, and one that is compressed.
func TestJDB(t *testing.T) {
	var keys, data []string
	for i := range 2000 {
		keys = append(keys, name(i))
		text := strings.Repeat("y", i*3)
		v := fmt.Sprintf("%08x0000000000000151800e%08x%x%08x%x00000000", 1, 4, "NOTE", len(text), text)
		stored, err := hex.DecodeString(fmt.Sprintf("00000001%08x%s", len(v)/2, v))
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, string(stored))
	}
	b := jdbFile(7, keys, data)
	check := func(texts ...any) {
		t.Helper()
		records, _ := good(t, foreign.Options{}, texts...)
		got := make(map[string]int)
		for _, rec := range records {
			got[rec.ID.String()] = len(rec.Values[0].Data)
		}
		for i := range keys {
			if got[name(i)] != i*3 {
				t.Fatalf("%s has %d octets, want %d", name(i), got[name(i)], i*3)
			}
		}
	}
	check(b)
	path := file(t, "handles.jdb", string(b))
	f, err := bulk.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := foreign.Open([]*bulk.File{f}, foreign.Options{System: "handle", Schemes: known})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	block, err := s.Next()
	if err != nil || s.Kinds()[0] != foreign.JDB || len(block.Rows) == 0 {
		t.Fatalf("%v, %v", s.Kinds(), err)
	}
}

// What is damaged is told, and never read for ever.
func TestJDBDamaged(t *testing.T) {
	whole, _ := jdbFiles(t)
	first := 18 + 8*5000
	for name, damage := range map[string]func(b []byte) []byte{
		"cut off":            func(b []byte) []byte { return b[:first+100] },
		"a table too large":  func(b []byte) []byte { b[14] = 0x7f; return b },
		"a chain in a ring":  func(b []byte) []byte { binary.BigEndian.PutUint64(b[first+9:], uint64(first)); return b },
		"an entry outside":   func(b []byte) []byte { b[18] = 0xff; return b },
		"an entry too early": func(b []byte) []byte { b[18+7] = 1; return b },
		"another kind":       func(b []byte) []byte { b[first] = 2; return b },
		"another place":      func(b []byte) []byte { b[first+17]++; return b },
		"a length too large": func(b []byte) []byte { b[first+5] = 0xff; return b },
	} {
		rows, _, err := read(t, foreign.Options{Format: foreign.JDB}, damage(bytes.Clone(whole)))
		bad := err != nil
		for i := range rows {
			bad = bad || rows[i].Err != nil
		}
		if !bad {
			t.Errorf("%s: nothing is told", name)
		}
	}
}

// A listing without values, and tables with other names, quotation marks and faults.
func TestListingsRefused(t *testing.T) {
	for _, tt := range []struct {
		format     foreign.Format
		text, want string
		good       int
	}{
		{foreign.DBList, "20.500.1/A\n20.500.1/B\n[]\n", "the values of \"20.500.1/A\" are missing; list the database with hdl-dblist -v", 1},
		{foreign.DBList, "20.500.1/A\n[{\"index\":\"x\"}]\n\n20.500.1/B\n[]\n", "index", 1},
		{foreign.DBList, "20.500.1/A\n[{\"index\":1,", "ends within line 2", 0},
		{foreign.CSV, "handle,idx,data\n", "type is not among them; say which it is with --map COLUMN=type", 0},
		{foreign.CSV, "handle,idx,type,data\n20.500.1/A,x,URL,y\n20.500.1/B,1,NOTE,\"a \"\"b\"\"\r\nc\"\n", "idx is not a number", 1},
		{foreign.CSV, "handle,idx,type,data\n20.500.1/A,1,URL\n20.500.1/B,1,NOTE,c\n", "3 values for 4 columns", 1},
		{foreign.CSV, "handle,idx,type,data\n20.500.1/A,1,NOTE,\"c\n", "is not closed", 0},
	} {
		rows, _, err := read(t, foreign.Options{Format: tt.format}, []byte(tt.text))
		told, n := "", 0
		if err != nil {
			told = err.Error()
		}
		for i := range rows {
			if rows[i].Err != nil {
				told += rows[i].Err.Error()
			} else {
				n++
			}
		}
		if !strings.Contains(told, tt.want) || n != tt.good {
			t.Errorf("%q: %d records, %s; want %d, %s", tt.text, n, told, tt.good, tt.want)
		}
	}
	records, _ := good(t, foreign.Options{Format: foreign.CSV, Map: map[string]string{"pid": "handle"}}, []byte("PID;idx;type;data\n20.500.1/B;1;NOTE;\"a \"\"b\"\"\r\nc\"\n"))
	if len(records) != 1 || string(records[0].Values[0].Data) != "a \"b\"\r\nc" {
		t.Errorf("got %+v", records)
	}
}

func FuzzJDB(f *testing.F) {
	handles, nas := jdbFiles(f)
	fuzzTexts(f, foreign.JDB, handles, nas)
}

func FuzzDBList(f *testing.F) { fuzzTexts(f, foreign.DBList, []byte(listing)) }

func FuzzCSV(f *testing.F) {
	fuzzTexts(f, foreign.CSV, []byte(tableCSV), []byte(prefixesCSV))
}
