package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"

	"github.com/stele-id/stele"
)

const million = 1_000_000

// benchName returns the n-th name.
func benchName(n int) string { return fmt.Sprintf("x%010x", mix(n)) }

// mix returns the number in the n-th name. Names come in no order, as those do that
// minters make at random, and none twice: each step can be undone.
func mix(n int) uint64 {
	const bits, mask = 40, 1<<40 - 1
	x := uint64(n) & mask
	for _, odd := range [...]uint64{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb} {
		x ^= x >> (bits / 2)
		x = x * odd & mask
	}
	return x ^ x>>(bits/2)
}

func benchID(n int) (stele.ID, error) { return stele.NewID("ark", "ark:12345/"+benchName(n)) }

// Words of titles and names of authors, so that records are not all alike: what
// compresses too well would flatter us.
var (
	things = [...]string{"rivers", "stones", "letters", "maps", "songs", "seeds", "tides", "bones", "bridges", "clouds", "coins", "dances", "gardens", "islands", "looms", "masks"}
	places = [...]string{"Amazonia", "Bahia", "Borneo", "Cyprus", "Flanders", "Galicia", "Java", "Karelia", "Lapland", "Malta", "Nepal", "Oaxaca", "Patagonia", "Samoa", "Tibet", "Wales"}
	people = [...]string{"Almeida", "Brandt", "Castro", "Dubois", "Eriksen", "Fonseca", "Gupta", "Haddad", "Ito", "Jansen", "Kaya", "Lima", "Moreau", "Novak", "Okafor", "Pereira"}
)

// describe returns who made the n-th thing, what it is called, and when it was made.
func describe(n int) (who, what, when string) {
	word := func(list *[16]string, i int) string { return list[(n*2654435761>>i)&15] }
	who = word(&people, 8) + ", " + word(&people, 12)
	what = "On the " + word(&things, 16) + " and " + word(&things, 20) + " of " + word(&places, 24) + ", volume " + strconv.Itoa(n)
	return who, what, strconv.Itoa(1900 + n%120)
}

// itemAt returns the URL of the n-th thing.
func itemAt(n int) string { return "https://archive.example.org/items/" + benchName(n)[1:] + "/view" }

// appendRecord appends the n-th record in JSON, of about 250 bytes.
func appendRecord(b []byte, n int) []byte {
	who, what, when := describe(n)
	b = append(b, `{"id":"ark:12345/`...)
	b = append(b, benchName(n)...)
	b = append(b, `","targets":[{"url":"`...)
	b = append(b, itemAt(n)...)
	b = append(b, `"}],"metadata":{"who":"`...)
	b = append(b, who...)
	b = append(b, `","what":"`...)
	b = append(b, what...)
	b = append(b, `","when":"`...)
	b = append(b, when...)
	return append(b, `"},"persistence":{"level":"permanent"}}`...)
}

// writeRecords writes n records, one a line. With the name and a tab before each it
// is what PostgreSQL's COPY reads; a record has nothing that must be escaped there.
func writeRecords(path string, n int, named bool) error { return writeRecordsFrom(path, 0, n, named) }

// writeRecordsFrom is writeRecords for n records from a number on.
func writeRecordsFrom(path string, from, n int, named bool) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	var line []byte
	for i := from; i < from+n; i++ {
		line = line[:0]
		if named {
			line = append(append(line, "ark:12345/"...), benchName(i)...)
			line = append(line, '\t')
		}
		line = append(appendRecord(line, i), '\n')
		if _, err := w.Write(line); err != nil {
			f.Close()
			return err
		}
	}
	if err := w.Flush(); err != nil {
		f.Close()
		return err
	}
	// What is still on its way to the disk would slow down the first that is measured.
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
