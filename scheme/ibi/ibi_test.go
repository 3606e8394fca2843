package ibi

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/schemetest"
)

func testClock() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) }

// vectors is testdata/ibi.json: the report's examples and tables, and labels in
// public use.
type vectors struct {
	RepositoryPrefix []struct {
		Host   string
		Port   uint16
		Prefix string
	} `json:"repository_prefix"`
	IBIpPrefix []struct {
		IP     netip.Addr
		Port   uint16
		Prefix string
		Mint   string
	} `json:"ibip_prefix"`
	ToDecimal   [][3]string `json:"to_decimal"`
	FromDecimal [][2]string `json:"from_decimal"`
	Dates       []struct {
		Unix, Rep, IBIp string
	}
	Table struct {
		Rows [][4]string
	} `json:"table_6_2"`
	TwoLabels     [][2]string `json:"one_item_two_labels"`
	Equivalent    [][]string
	NotEquivalent [][2]string `json:"not_equivalent"`
	Invalid       []string
}

func readVectors(t testing.TB) (v vectors) {
	raw, err := os.ReadFile("../../testdata/ibi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.RepositoryPrefix) == 0 || len(v.IBIpPrefix) == 0 || len(v.ToDecimal) == 0 || len(v.FromDecimal) == 0 ||
		len(v.Dates) == 0 || len(v.Table.Rows) == 0 || len(v.TwoLabels) == 0 || len(v.Invalid) == 0 {
		t.Fatalf("vectors are missing: %+v", v)
	}
	return v
}

func date(t testing.TB, unix string) mint.Date {
	t.Helper()
	whole, fraction, _ := strings.Cut(unix, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	atto, f := readFraction(fraction)
	if f.reason != nil {
		t.Fatal(f.reason)
	}
	d, err := mint.NewDate(sec, atto)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestVectorsOfPrefixes(t *testing.T) {
	v := readVectors(t)
	for _, c := range v.RepositoryPrefix {
		if p, err := RepPrefix(c.Host, c.Port); err != nil || p.String() != c.Prefix || p.Form() != FormRep {
			t.Errorf("%s port %d: %v, %v; want %s", c.Host, c.Port, p, err, c.Prefix)
		}
	}
	for _, c := range v.IBIpPrefix {
		p, err := IBIpPrefix(c.IP, c.Port, AnyAddress)
		if err != nil || p.String() != c.Prefix || p.Form() != FormIBIp {
			t.Errorf("%s port %d: %v, %v; want %s", c.IP, c.Port, p, err, c.Prefix)
		}
		if _, err := IBIpPrefix(c.IP, c.Port, PublicOnly); (err != nil) != (c.Mint != "") {
			t.Errorf("%s: %v, want %q", c.IP, err, c.Mint)
		}
	}
}

// Tables 7.2 and 7.3.
func TestVectorsOfConversion(t *testing.T) {
	v := readVectors(t)
	text27 := make(map[string]string)
	for _, c := range v.FromDecimal {
		text27[c[0]] = c[1]
		if n, err := strconv.ParseUint(c[0], 10, 64); err == nil {
			if got := string(append27(nil, n)); got != c[1] {
				t.Errorf("%s in base 27: %s, want %s", c[0], got, c[1])
			}
			if back, bad := parse27(c[1]); back != n || bad >= 0 {
				t.Errorf("%s from base 27: %d", c[1], back)
			}
		}
	}
	for i := range len(digits27) {
		upper, _ := parse27(digits27[i : i+1])
		if lower, bad := parse27(strings.ToLower(digits27[i : i+1])); bad >= 0 || lower != upper || upper != uint64(i) {
			t.Errorf("digit %c is %d, in lower case %d", digits27[i], upper, lower)
		}
	}
	for _, c := range v.ToDecimal {
		addr, digits := netip.MustParseAddr(c[0]), text27[c[2]]
		if got := string(appendAddr(nil, addr)); got != digits || digits == "" {
			t.Errorf("%s: %s, want %s, which is decimal %s", addr, got, digits, c[2])
		}
		var buf [48]byte
		if got := string(addrText(&buf, digits, c[1] == "ipv6")); got != c[0] {
			t.Errorf("%s: %s, want %s", digits, got, c[0])
		}
	}
}

func TestVectorsOfDates(t *testing.T) {
	v := readVectors(t)
	for _, c := range v.Dates {
		d := date(t, c.Unix)
		if got := string(appendRepSuffix(nil, d)); got != c.Rep {
			t.Errorf("%s: %s, want %s", c.Unix, got, c.Rep)
		}
		if got := string(appendIBIpSuffix(nil, d)); got != c.IBIp {
			t.Errorf("%s: %s, want %s", c.Unix, got, c.IBIp)
		}
	}
	for _, row := range v.Table.Rows {
		if got := string(appendRepSuffix(nil, date(t, row[2]))); got != row[3] {
			t.Errorf("%s: %s, want %s", row[2], got, row[3])
		}
	}
	// Two labels of one item tell the same date.
	for _, pair := range v.TwoLabels {
		rep, err := New(testClock).Explain(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		ibip, err := New(testClock).Explain(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if rep.Parts.Get("time") != ibip.Parts.Get("time") || rep.Parts.Get("time") == nil {
			t.Errorf("%v: %v and %v", pair, rep.Parts, ibip.Parts)
		}
	}
}

func samples(t testing.TB) schemetest.Samples {
	v := readVectors(t)
	oddV4, oddV6, mapped := rawPrefix("150.163.034.243"), rawPrefix("2a00:0:0:0:0:0:0:1"), rawPrefix("::ffff:96a3:22f3")
	s := schemetest.Samples{
		Canonical: map[string]string{
			"sid.inpe.br/mtc-m18@80/2009/02.16.17.46":                        "sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
			"SID.inpe.BR/MTC-m18.8080/2009/02.16.17.46":                      "sid.inpe.br/mtc-m18.8080/2009/02.16.17.46",
			"sid.inpe.br./mtc-m18/2009/02.16.17.46":                          "sid.inpe.br/mtc-m18/2009/02.16.17.46",
			"8jmkd3mgp8w/34pgrbs":                                            "8JMKD3MGP8W/34PGRBS",
			"ibi/8JMKD3MGP8W/34PGRBS":                                        "8JMKD3MGP8W/34PGRBS",
			"REP/8JMKD3MGP8W/34PGRBS":                                        "8JMKD3MGP8W/34PGRBS",
			"rep/sid.inpe.br/mtc-m18/2009/02.16.17.46":                       "sid.inpe.br/mtc-m18/2009/02.16.17.46",
			"ibi/sid.inpe.br/mtc-m18/2009/02.16.17.46":                       "sid.inpe.br/mtc-m18/2009/02.16.17.46",
			"http://urlib.net/rep/8JMKD3MGP3W34T/47AF772":                    "8JMKD3MGP3W34T/47AF772",
			"http://urlib.net/8JMKD3MGP3W34T/47AF772?x=1#y":                  "8JMKD3MGP3W34T/47AF772",
			"HTTPS://urlib.net:443/ibi/iconet.com.br/banon/2010/08.25.12.38": "iconet.com.br/banon/2010/08.25.12.38",
			"http://urlib.net/iconet.com.br/banon/2010/08.25.12.38":          "iconet.com.br/banon/2010/08.25.12.38",
			"http://urlib.net/rep/sid.inpe.br/mtc-m18%4080/2009/02.16.17.46": "sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
			"http://urlib.net/rep/8JMKD3MGP8W%2F34PGRBS":                     "8JMKD3MGP8W/34PGRBS",
			"rep/mtc/2009/02.16.17.46":                                       "rep/mtc/2009/02.16.17.46", // a host mtc.rep
			"7URMDHLL9SSN2D89MX/38G3TS3":                                     "7URMDHLL9SSN2D89MX/38G3TS3",
			"LK47B6W/2":                                                      "LK47B6W/2", // the epoch itself
		},
		Same: v.Equivalent,
		Distinct: []string{
			"sid.inpe.br/mtc-m18@80/2009/02.16.17.46", "sid.inpe.br/mtc-m18/2009/02.16.17.46",
			"sid.inpe.br/mtc-m18@8080/2009/02.16.17.46", "sid.inpe.br/mtc-m18.8080/2009/02.16.17.46",
			"sid.inpe.br/mtc-m18/2009/02.16.17.46.01", "sid.inpe.br/mtc-m18/2009/02.16.17.46.00.1",
			"sid.inpe.br/mtc-m18/2009/02.16.17.46.00.01", "LK47B6W/34PGRBSW7", "LK47B6W/34PGRBSW27",
			"LK47B6W/34PGRBSW227", "LK47B6W/34PGRBS", "LK47B6W3/34PGRBS",
		},
		Invalid: map[string]string{
			"sid.inpe.br/mtc-m18.80/2009/02.16.17.46":                     "port 80",
			"sid.inpe.br/mtc-m18.080/2009/02.16.17.46":                    "not a port",
			"sid.inpe.br/mtc-m18@080/2009/02.16.17.46":                    "not a port",
			"sid.inpe.br/mtc-m18.0/2009/02.16.17.46":                      "not a port",
			"sid.inpe.br/mtc-m18.65536/2009/02.16.17.46":                  "not a port",
			"sid.inpe.br/mtc-m18./2009/02.16.17.46":                       "not a port",
			"sid.inpe.br/mtc-m18.+8/2009/02.16.17.46":                     "not a port",
			"sid.inpe.br/a.b.81/2009/02.16.17.46":                         "can't stand",
			"sid.inpe.br/mtc-m18/2009/02.16.17.46.00":                     "left out",
			"sid.inpe.br/mtc-m18/2009/02.16.17.46.00.0":                   "end in 0",
			"sid.inpe.br/mtc-m18/2009/02.16.17.46.10.50":                  "end in 0",
			"sid.inpe.br/mtc-m18/2009/02.16.17.46.10.":                    "missing",
			"sid.inpe.br/mtc-m18/2009/02.16.17.46.10.1234567890123456789": "at most 18",
			"sid.inpe.br/mtc-m18/2009/02.16.17.46.60":                     "no second",
			"sid.inpe.br/mtc-m18/2009/02.16.17.60":                        "no minute",
			"sid.inpe.br/mtc-m18/2009/02.29.17.46":                        "no day",
			"sid.inpe.br/mtc-m18/2100/02.29.17.46":                        "no day",
			"sid.inpe.br/mtc-m18/2009/00.01.17.46":                        "no month",
			"sid.inpe.br/mtc-m18/2009/02.16.17":                           "month.day",
			"sid.inpe.br/mtc-m18/2009/2.16.17.46":                         "can't stand",
			"sid.inpe.br/mtc-m18/02009/02.16.17.46":                       "not a year",
			"sid.inpe.br/mtc-m18/12009/02.16.17.46":                       "not a year",
			"sid.inpe.br/mtc-m18/1969/02.16.17.46":                        "1970",
			"sid.inpe.7/mtc-m18/2009/02.16.17.46":                         "begins with a letter",
			"sid..br/mtc-m18/2009/02.16.17.46":                            "can't stand",
			"sid.inpe.br/mtc_m18/2009/02.16.17.46":                        "can't stand",
			"sid.inpе.br/mtc-m18/2009/02.16.17.46":                        "looks like 'e'",
			"sid.inpe.br/mtc-m18/2009/0\u0662.16.17.46":                   "can't stand",
			"sid.inpe.br/mtc-m18/2009/02.16.17.46\x00":                    "control",
			"sid.inpe.br/mtc-m18/2009/02.16.\u202e17.46":                  "bidirectional",
			strings.Repeat("a.", 126) + "br/w123/2009/02.16.17.46":        "can't stand",
			strings.Repeat("a.", 124) + "br/w123/2009/02.16.17.46":        "253",
			"8JMKD3MGP8W/34PGRВS":                                         "looks like 'B'",
			"2JMKD3MGP8W/34PGRBS":                                         "zero of base 27",
			"LK47B6W2/34PGRBS":                                            "zero of base 27",
			"LK47B6W34K/34PGRBS":                                          "800",
			"LK47B6W5BR3/34PGRBS":                                         "65535",
			"LK47B6W22222/34PGRBS":                                        "zero of base 27",
			"LK47B6W33333/34PGRBS":                                        "longer than any port",
			"LK47B6W3W/34PGRBS":                                           "second separator",
			"LK47B6W/234PGRBS":                                            "zero of base 27",
			"LK47B6W/34PGRBSW":                                            "fraction of zero",
			"LK47B6W/34PGRBSW2":                                           "fraction of zero",
			"LK47B6W/34PGRBSWC":                                           "ends in a zero",
			"LK47B6W/34PGRBSX3":                                           "X can't stand",
			"LK47B6W/34PGRBSW3W3":                                         "second separator",
			"LK47B6W/34PGRBSW2222222222222222223":                         "at most 18",
			"LK47B6W/34PGRBSWUUUUUUUUUUUUUU":                              "at most 18",
			"LK47B6W/UUUUUUUUU":                                           "9999",
			"LK47B6W/UUUUUUUU":                                            "9999",
			"W/34PGRBS":                                                   "no address",
			"AAAW/34PGRBS":                                                "not an IP address",
			"AAAX/34PGRBS":                                                "not an IP address",
			"UUUUUUUUUUUW/34PGRBS":                                        "not an IP address",
			strings.Repeat("U", 34) + "X/34PGRBS":                         "not an IP address",
			strings.Repeat("U", 12) + "W/34PGRBS":                         "longer than any IP",
			strings.Repeat("U", 35) + "X/34PGRBS":                         "longer than any IP",
			"ibi/foo/bar":                                                 "can't stand",
			"http://urlib.net/rep/8JMKD3MGP8W/34PGRBO":                    "can't stand",
			"http://urlib.net/rep/8JMKD3MGP8W%2/34PGRBS":                  "hexadecimal",
			"http://urlib.net/rep/8JMKD3MGP8W%00/34PGRBS":                 "can't stand",
		},
		Foreign: []string{
			"10.1000/182", "102.100.272/Y35XYS0QH", "10.1000/a/2009/02.16.17.46", "urn:isbn:9780000000002",
			"ark:12345/x1", "hdl:10.1/2", "foo/8JMKD3MGP8W/34PGRBS", "https://example.org/", "https://example.org/foo/bar", "https:///8JMKD3MGP8W/34PGRBS",
			"https://purl.org/dc/terms/title", "http://purl.oclc.org/OCLC/OLUC/32127398/1",
			"http://urlib.net/sid.inpe.br/mtc-m18/2009/13.16.17.46", "http://urlib.net/8JMKD3MGP8W/234PGRBS", "example.org/a/b/c", "just words", "sid.inpe.br", "1/2",
		},
		Parents: map[string][]string{
			"sid.inpe.br/mtc-m18.8080/2009/02.16.17.46": {"sid.inpe.br/mtc-m18.8080/2009", "sid.inpe.br/mtc-m18.8080", "sid.inpe.br"},
			"8JMKD3MGP8W/34PGRBS":                       {"8JMKD3MGP8W"},
		},
		Warnings: map[string]string{
			"8JMKD3MGP8W/34PGRBS":                                        "",
			"sid.inpe.br/mtc-m18/2009/02.16.17.46":                       "",
			"sid.inpe.br/mtc-m18@80/2009/02.16.17.46":                    "before August 2010",
			"LK47B6W/362SFKH":                                            "127.0.0.1 is a loopback address",
			rawPrefix("10.1.2.3") + "/34PGRBS":                           "private",
			rawPrefix("192.0.2.7") + "/34PGRBS":                          "documentation",
			rawPrefix("169.254.2.7") + "/34PGRBS":                        "link-local",
			rawPrefix("fe80::1") + "/34PGRBS":                            "link-local",
			rawPrefix("::") + "/34PGRBS":                                 "unspecified",
			rawPrefix("2001:db8::1") + "/34PGRBS":                        "documentation",
			oddV4 + "/34PGRBS":                                           `"150.163.034.243", which is not how it is written today; 8JMKD3MGP8W/34PGRBS`,
			oddV6 + "/34PGRBS":                                           "not how it is written",
			mapped + "/34PGRBS":                                          "8JMKD3MGP8W/34PGRBS",
			"con.br/aux/2009/02.16.17.46":                                `"con.br"` + "\n" + `"aux"`,
			"sid.inpe.br/mtc/2026/06.01.00.01":                           "future",
			"http://urlib.net/rep/8JMKD3MGP8W/34PGRBS?languagebutton=en": "query",
		},
		Positions: map[string]string{
			"sid.inpe.br/mtc-m18/2009/13.16.17.46":                        "13.16",
			"sid.inpe.br/mtc-m18/2009/02.30.17.46":                        "30.17",
			"http://urlib.net/rep/sid.inpe.br/mtc-m18/2009/02.16.24.00":   "24.00",
			"http://urlib.net/rep/sid.inpe.br/m%74c-m18/2009/02.16.17.61": "61",
			"ibi/8JMKD3MGP8W/34PGRBO":                                     "O",
			"http://urlib.net/ibi/8JMKD3MGP8W%2F34PGRBO":                  "O",
			"sid.inpe.br/-m18/2009/02.16.17.46":                           "-m18",
			"sid.inpe.br/m18.65536/2009/02.16.17.46":                      "65536",
		},
		Allocations: map[string]int{
			"sid.inpe.br/mtc-m18/2009/02.16.17.46":        3,
			"8JMKD3MGP3W34T/47AF772":                      3,
			"7URMDHLL9SSN2D89MX/38G3TS3":                  3,
			"http://urlib.net/rep/8JMKD3MGP3W34T/47AF772": 3,
			"SID.INPE.BR/MTC-M18/2009/02.16.17.46":        3,
		},
	}
	for _, pair := range v.NotEquivalent {
		s.Distinct = append(s.Distinct, pair[0]+".02", pair[1]+".02")
	}
	for _, text := range v.Invalid {
		s.Invalid[text] = ""
	}
	return s
}

func TestScheme(t *testing.T) { schemetest.Run(t, New(testClock), samples(t)) }
func FuzzParse(f *testing.F)  { schemetest.Fuzz(f, New(testClock), samples(f)) }

func BenchmarkParse(b *testing.B) {
	schemetest.Benchmark(b, New(testClock), map[string]string{
		"rep":      "sid.inpe.br/mtc-m18/2009/02.16.17.46",
		"ibip":     "8JMKD3MGP3W34T/47AF772",
		"ibip-v6":  "7URMDHLL9SSN2D89MX/38G3TS3",
		"URL":      "http://urlib.net/rep/8JMKD3MGP3W34T/47AF772",
		"capitals": "SID.INPE.BR/MTC-M18/2009/02.16.17.46",
	})
}

func TestExplain(t *testing.T) {
	for text, want := range map[string]string{
		"SID.inpe.br/mtc-m18@80/2009/02.16.17.46":                         `{"host":"mtc-m18.sid.inpe.br","port":80,"time":"2009-02-16T17:46:00Z","directories":["sid.inpe.br","mtc-m18@80","2009","02.16.17.46"]}`,
		"iconet.com.br/Banon.8080/2003/01.02.03.04.05.000000000000000001": `{"host":"banon.iconet.com.br","port":8080,"time":"2003-01-02T03:04:05.000000000000000001Z","directories":["iconet.com.br","banon.8080","2003","01.02.03.04.05.000000000000000001"]}`,
		"8JMKD3MGP3W34T/47AF772":                                          `{"ip":"150.163.34.239","port":808,"time":"2022-07-20T15:45:00Z"}`,
		"7URMDHLL9SSN2D89MX/38G3TS3":                                      `{"ip":"2001:252:0:1::2008:6","port":800,"time":"2010-10-28T01:04:22Z"}`,
		"LK47B6W/34PGRBSW227":                                             `{"ip":"127.0.0.1","port":800,"time":"2009-02-16T17:46:00.005Z"}`,
	} {
		x, err := New(testClock).Explain(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := json.Marshal(x.Parts); string(got) != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// rawPrefix is algorithm 5 on any text, in big integers: it makes labels with an
// address that is not canonical, and is the oracle for our own.
func rawPrefix(text string) string {
	base, sep := int64(11), "W"
	if strings.Contains(text, ":") {
		base, sep = 17, "X"
	}
	n := new(big.Int)
	for i := range len(text) {
		n.Add(n.Mul(n, big.NewInt(base)), big.NewInt(int64(ipDigit(text[i]))))
	}
	var out []byte
	for rest := new(big.Int); n.Sign() > 0; {
		n.DivMod(n, big.NewInt(27), rest)
		out = append([]byte{digits27[rest.Int64()]}, out...)
	}
	return string(out) + sep
}

func genAddr() *rapid.Generator[netip.Addr] {
	return rapid.Custom(func(t *rapid.T) netip.Addr {
		b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes")
		for i := rapid.IntRange(0, 16).Draw(t, "zeros from"); i < rapid.IntRange(0, 16).Draw(t, "zeros to"); i++ {
			b[i] = 0
		}
		if rapid.Bool().Draw(t, "v4") {
			return netip.AddrFrom4([4]byte(b))
		}
		return netip.AddrFrom16([16]byte(b)).Unmap()
	})
}

func genDate(from int64) *rapid.Generator[mint.Date] {
	return rapid.Custom(func(t *rapid.T) mint.Date {
		atto := rapid.Uint64Range(0, 999_999_999_999_999_999).Draw(t, "atto")
		unit := uint64(1)
		for range rapid.IntRange(0, 18).Draw(t, "rounded") {
			unit *= 10
		}
		atto -= atto % unit
		d, err := mint.NewDate(rapid.Int64Range(from, 253_402_300_799).Draw(t, "sec"), atto)
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

// Whatever algorithms 5 to 7 make is read, tells its address, port and date, and
// is canonical. The encoding agrees with big integers.
func TestIBIpRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		addr, port := genAddr().Draw(t, "addr"), rapid.Uint16Range(1, 65535).Draw(t, "port")
		d := genDate(epoch).Draw(t, "date")
		p, err := IBIpPrefix(addr, port, AnyAddress)
		if err != nil {
			t.Fatal(err)
		}
		if want := rawPrefix(addr.String()); !strings.HasPrefix(p.String(), want) {
			t.Fatalf("%v: %s, want %s", addr, p, want)
		}
		id, err := p.ID(d)
		if err != nil {
			t.Fatal(err)
		}
		var l label
		f := l.readIBIp(id.String())
		if f.reason != nil || l.addr != addr || l.port != port || l.date != d || l.text != id.String() {
			t.Fatalf("%v port %d at %v: %s is read as %+v, %+v", addr, port, d, id, l, f)
		}
	})
}

// The same for algorithms 1 to 3.
func TestRepRoundTrip(t *testing.T) {
	word := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.SliceOfN(word, 1, 4).Draw(t, "words")
		host := strings.Join(labels, ".") + "." + rapid.StringMatching(`[a-z][a-z0-9]{0,5}`).Draw(t, "last")
		port, d := rapid.Uint16Range(1, 65535).Draw(t, "port"), genDate(0).Draw(t, "date")
		p, err := RepPrefix(strings.ToUpper(host), port)
		if err != nil {
			t.Fatal(err)
		}
		id, err := p.ID(d)
		if err != nil {
			t.Fatal(err)
		}
		var l label
		f := l.readRep(id.String())
		if f.reason != nil || l.hostName() != host || l.port != port || l.date != d || l.text != id.String() {
			t.Fatalf("%s port %d at %v: %s is read as %+v, %+v", host, port, d, id, l, f)
		}
	})
}

// Two dates never share a suffix: the report's reading of fractions would.
func TestSuffixesAreInjective(t *testing.T) {
	seen := make(map[string]string)
	for _, unix := range []string{"1234806360", "1234806360.5", "1234806360.05", "1234806360.005", "1234806360.55", "1234806360.27", "1234806360.000000000000000001"} {
		for _, suffix := range []string{string(appendRepSuffix(nil, date(t, unix))), string(appendIBIpSuffix(nil, date(t, unix)))} {
			if other, ok := seen[suffix]; ok {
				t.Errorf("%s and %s share %s", other, unix, suffix)
			}
			seen[suffix] = unix
		}
	}
	for unix, want := range map[string]string{"1234806360.5": "34PGRBSW7", "1234806360.05": "34PGRBSW27", "1234806360.005": "34PGRBSW227"} {
		if got := string(appendIBIpSuffix(nil, date(t, unix))); got != want {
			t.Errorf("%s: %s, want %s", unix, got, want)
		}
	}
}

// A date is read exactly if it exists, in years of every kind.
func TestEveryDay(t *testing.T) {
	for _, year := range []int{1971, 1972, 2000, 2100, 2400, 9999} {
		for month := 0; month <= 13; month++ {
			for day := 0; day <= 32; day++ {
				at := time.Date(year, time.Month(month), day, 5, 6, 0, 0, time.UTC)
				exists := at.Year() == year && int(at.Month()) == month && at.Day() == day
				label := fmt.Sprintf("inpe.br/m/%04d/%02d.%02d.05.06", year, month, day)
				x, err := New(testClock).Explain(label)
				if (err == nil) != exists || exists && x.Parts.Get("time") != at.Format(time.RFC3339) {
					t.Errorf("%s: %v, %v", label, x.Parts.Get("time"), err)
				}
			}
		}
	}
}

// A prefix is read exactly if it decodes to an address.
func TestEveryAddress(t *testing.T) {
	for text, good := range map[string]bool{
		"1.2.3.4": true, "255.255.255.255": true, "0.0.0.0": true, "1.2.3.04": true, "::": true, "1::": true, "0:0:1::": true,
		"256.1.1.1": false, "1.256.1.1": false, "1.1.1.256": false, "1.1.1.0001": false, "1.2.3": false, "1.2.3.4.5": false, "1.2.3.": false,
		"1..3.4": false, "1234": false, "1:2:3": false, "1:2:3:4:5:6:7:8:9": false, "1::2::3": false, "12345::": false, ":::": false,
	} {
		if _, err := New(testClock).Parse(rawPrefix(text) + "/34PGRBS"); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPrefixesRefused(t *testing.T) {
	for _, host := range []string{"", "localhost", "localhost.", ".", "a..b", "-a.b", "a.7", "a_b.c", "ü.br", "a\x00.br", "www.doi.org", "x.hdl.handle.net", strings.Repeat("a.", 126) + "br", "150.163.34.243"} {
		if p, err := RepPrefix(host, 80); err == nil || !errors.Is(err, stele.Invalid) {
			t.Errorf("RepPrefix(%q) = %v, %v", host, p, err)
		}
	}
	if p, err := RepPrefix("a.br", 0); err == nil {
		t.Errorf("port 0: %v", p)
	}
	if _, err := RepPrefix("localhost", 80); !strings.Contains(err.Error(), "fully qualified") {
		t.Errorf("localhost: %v", err)
	}
	for _, text := range []string{"127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.1.1", "0.0.0.0", "192.0.2.1", "100.64.0.1",
		"224.0.0.1", "192.0.0.2", "64:ff9b:1::1", "5f00::1", "2001:10::1", "2001:2::1", "255.255.255.255", "::1", "::", "fe80::1", "fd00::1", "2001:db8::1", "ff02::1", "::ffff:10.0.0.1"} {
		if p, err := IBIpPrefix(netip.MustParseAddr(text), 800, PublicOnly); err == nil || !errors.Is(err, stele.Invalid) {
			t.Errorf("IBIpPrefix(%s) = %v, %v", text, p, err)
		}
	}
	if p, err := IBIpPrefix(netip.MustParseAddr("fe80::1%eth0"), 800, AnyAddress); err == nil || !strings.Contains(err.Error(), "zone") {
		t.Errorf("with a zone: %v, %v", p, err)
	}
	for _, bad := range []struct {
		addr netip.Addr
		port uint16
	}{{netip.Addr{}, 800}, {netip.MustParseAddr("150.163.2.174"), 0}} {
		if p, err := IBIpPrefix(bad.addr, bad.port, AnyAddress); err == nil {
			t.Errorf("%v: %v", bad, p)
		}
	}
	mapped, err := IBIpPrefix(netip.MustParseAddr("::ffff:150.163.34.243"), 800, PublicOnly)
	if err != nil || mapped.String() != "8JMKD3MGP8W" {
		t.Errorf("mapped: %v, %v", mapped, err)
	}
	early, err := mint.NewDate(epoch-1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := mapped.ID(early); err == nil {
		t.Errorf("an IBIp of 1995-07-31: %v", id)
	}
	if id, err := (Prefix{}).ID(early); err == nil {
		t.Errorf("a label of the zero Prefix: %v", id)
	}
}

func BenchmarkLabel(b *testing.B) {
	p, err := IBIpPrefix(netip.MustParseAddr("150.163.34.243"), 800, PublicOnly)
	if err != nil {
		b.Fatal(err)
	}
	d := date(b, "1234806360.123456")
	b.Run("stele", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.ID(d); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("uuid", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			u, err := uuid.NewV7()
			if err != nil {
				b.Fatal(err)
			}
			_ = u.String()
		}
	})
}
