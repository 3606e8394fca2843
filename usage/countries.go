package usage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/stele-id/stele"
)

// maxCountries is how many bytes a database of addresses has at most. It is in memory as a whole.
const maxCountries = 512 << 20

// Country is a country: 0 if it is not known, or else a number for its two letters. It has countryBits bits.
type Country uint16

const countryBits = 10

// newCountry returns the country with a code of two letters (ISO 3166-1).
func newCountry(code string) Country {
	if len(code) != 2 || code[0] < 'A' || 'Z' < code[0] || code[1] < 'A' || 'Z' < code[1] {
		return 0
	}
	return 1 + Country(code[0]-'A')*26 + Country(code[1]-'A')
}

// String returns the two letters; "" for a country that is not known.
func (c Country) String() string {
	if c == 0 || c > 26*26 {
		return ""
	}
	return string([]byte{'A' + byte((c-1)/26), 'A' + byte((c-1)%26)})
}

// Countries finds the countries of addresses in a file of MaxMind's format (mmdb), which has for each network a map with country.iso_code, such as
// GeoLite2 Country and DB-IP's files. It is for many goroutines at once.
type Countries struct {
	path string
	file atomic.Pointer[countryFile]
}

// countryFile is a file as it was read.
type countryFile struct {
	reader  *maxminddb.Reader
	changed time.Time
	size    int64
	sum     [sha256.Size]byte

	// known has the countries of entries of the file, by their places, so that an entry is rarely decoded: the place, and the country in the lowest bits.
	known [4096]atomic.Uint64
}

// OpenCountries reads a file.
func OpenCountries(path string) (*Countries, error) {
	c := &Countries{path: path}
	_, err := c.read()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// read reads the file, if it is another one than before.
func (c *Countries) read() (changed bool, err error) {
	wrong := func(cause error) error {
		var path *fs.PathError // which has the name of the file again
		if errors.As(cause, &path) {
			cause = path.Err
		}
		return refuse(stele.Invalid, "usage.countries-file", "{file} can't be read as a file of MaxMind's format (.mmdb): {cause}", c.path, cause)
	}
	file, err := os.Open(c.path)
	if err != nil {
		return false, wrong(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false, wrong(err)
	}
	if had := c.file.Load(); had != nil && had.changed.Equal(info.ModTime()) && had.size == info.Size() {
		return false, nil
	}
	text, err := io.ReadAll(io.LimitReader(file, maxCountries+1))
	if err != nil {
		return false, wrong(err)
	}
	if len(text) > maxCountries {
		return false, refuse(stele.Invalid, "usage.countries-too-large", "{file} has more than {most} bytes; use a file with countries only", c.path, maxCountries)
	}
	// Addresses that are looked up now may be in the former file: it is memory that is freed when no request uses it any more.
	reader, err := maxminddb.OpenBytes(text)
	if err != nil {
		return false, wrong(err)
	}
	c.file.Store(&countryFile{reader: reader, changed: info.ModTime(), size: info.Size(), sum: sha256.Sum256(text)})
	return true, nil
}

// Digest tells files apart.
func (c *Countries) Digest() string { return hex.EncodeToString(c.file.Load().sum[:]) }

// Watch reads the file again when it changes, until the context ends. A file that can't be read is told to the operator once, and the former one stays.
func (c *Countries) Watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	told := ""
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		changed, err := c.read()
		switch {
		case err != nil && err.Error() != told:
			told = err.Error()
			log.Warn("the file with countries can't be read again; the former one is used", "error", told)
		case changed:
			told = ""
			log.Info("the file with countries was read again", "file", c.path)
		}
	}
}

// Country returns the country of an address. It neither waits nor, for most addresses, allocates.
func (c *Countries) Country(addr netip.Addr) Country {
	f := c.file.Load()
	addr = addr.Unmap().WithZone("")
	if addr.Is6() && f.reader.Metadata.IPVersion == 4 { // the reader would make an error that has the address
		return 0
	}
	found := f.reader.Lookup(addr)
	if !found.Found() {
		return 0
	}
	const mask = 1<<countryBits - 1
	at := uint64(found.Offset())<<countryBits | 1<<63 // 0 is an entry of the table that was not set
	slot := &f.known[uint64(found.Offset())*0x9e3779b97f4a7c15>>52]
	if have := slot.Load(); have&^mask == at {
		return Country(have & mask)
	}
	var code string
	if err := found.DecodePath(&code, "country", "iso_code"); err != nil {
		return 0
	}
	land := newCountry(code)
	slot.Store(at | uint64(land))
	return land
}
