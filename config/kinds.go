package config

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/internal/lease"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/scheme/ark"
	"github.com/stele-id/stele/scheme/purl"
	"github.com/stele-id/stele/serve/dnsd"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/store/postgres"
)

// kind is the kind of values of a setting.
type kind struct {
	word string // for people
	form form
	// text reads a value as it is written on the command line, in the environment,
	// and for most kinds between the quotation marks of the file. Of a list or a
	// table it reads one element.
	text func(s *Setting, text string) (any, error)
}

// Word describes for people which values the setting can have.
func (s *Setting) Word() string { return s.kind.word }

// IsBool reports whether the setting is yes or no.
func (s *Setting) IsBool() bool { return s.kind.form == boolForm }

// Repeats reports whether the setting is a list or a table, whose flag may be repeated.
func (s *Setting) Repeats() bool { return s.kind.form == listForm || s.kind.form == tableForm }

// IsText reports whether the setting stands in quotation marks in the file.
func (s *Setting) IsText() bool { return s.kind.form == textForm }

// IsFile and IsFolder report whether the setting names a file, or a folder.
func (s *Setting) IsFile() bool   { return s.kind.word == fileKind.word }
func (s *Setting) IsFolder() bool { return s.kind.word == folderKind.word }

// form is how values of a kind stand in the configuration file.
type form uint8

const (
	textForm   form = iota // "8080"
	boolForm               // true
	numberForm             // 302
	listForm               // ["a", "b"]
	tableForm              // [global], with lines ark = "..."
)

var (
	folderKind     = kind{"folder", textForm, readFolder}
	storeKind      = kind{"database", textForm, orNothing(readStore)}
	addressKind    = kind{"address", textForm, readAddress}
	offAddressKind = kind{"address", textForm, orNothing(readAddress)}
	addressesKind  = kind{"addresses", listForm, readAddress}
	sourcesKind    = kind{"addresses", listForm, readSource}
	identityKind   = kind{"name", textForm, orNothing(readIdentity)}
	syslogKind     = kind{"place", textForm, orNothing(readSyslog)}
	fileKind       = kind{"file", textForm, orNothing(readFile)}
	offFolderKind  = kind{"folder", textForm, orNothing(readFolder)}
	domainsKind    = kind{"hosts", listForm, readDomain}
	emailKind      = kind{"address", textForm, orNothing(readEmail)}
	directoryKind  = kind{"URL", textForm, readDirectory}
	proxiesKind    = kind{"addresses", listForm, readProxy}
	baseKind       = kind{"URL", textForm, orNothing(readBase)}
	timeGateKind   = kind{"URL", textForm, orNothing(readTimeGate)}
	hostKind       = kind{"host", textForm, orNothing(readHost)}
	handlesKind    = kind{"identities", listForm, readHandleIdentity}
	purlHostsKind  = kind{"hosts", listForm, readHost}
	shouldersKind  = kind{"shoulders", listForm, readShoulder}
	globalKind     = kind{"scheme=URL", tableForm, readGlobal}
	boolKind       = kind{"yes or no", boolForm, readBool}
	durationKind   = kind{"duration", textForm, readDuration}
	timeoutKind    = kind{"duration", textForm, readTimeout}
	leaseKind      = kind{"duration", textForm, readLease}
	sizeKind       = kind{"size", textForm, readSize}
	headKind       = kind{"size", textForm, readHead}
	countKind      = kind{"number", numberForm, readCount}
	positiveKind   = kind{"number", numberForm, readPositive}
	statusKind     = kind{"number", numberForm, readStatus}
	choiceKind     = kind{"word", textForm, readChoice}
)

// Read reads a value: a text from the command line or the environment, or what TOML
// has. The result is what the setting's field in Values takes. The error has all
// faults.
func (s *Setting) Read(value any) (any, error) {
	switch s.kind.form {
	case listForm:
		return s.readList(value)
	case tableForm:
		return s.readTable(value)
	}
	text, err := s.scalar(value)
	if err != nil {
		return nil, err
	}
	return s.kind.text(s, text)
}

// scalar returns a value that is not a list or a table as it is written.
func (s *Setting) scalar(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return strings.TrimSpace(v), nil
	case bool:
		if s.kind.form == boolForm {
			return strconv.FormatBool(v), nil
		}
	case int64:
		if s.kind.form == numberForm || v == 0 && s.kind.word == sizeKind.word {
			return strconv.FormatInt(v, 10), nil
		}
	}
	return "", stele.Messagef("config.written-otherwise", "this is written otherwise, as in {example}", s.InFile(s.Example))
}

// readList reads a list: of the file, or a text in which commas or spaces stand
// between the elements.
func (s *Setting) readList(value any) (any, error) {
	var texts []string
	switch v := value.(type) {
	case string:
		texts = SplitList(v)
	case []string:
		texts = v
	case []any:
		for _, element := range v {
			text, ok := element.(string)
			if !ok {
				return nil, stele.Messagef("config.list-element-not-text", "each element is a text in quotation marks; an example is {example}", s.InFile(s.Example))
			}
			texts = append(texts, text)
		}
	default:
		return nil, stele.Messagef("config.not-a-list", "a list belongs here; an example is {example}", s.InFile(s.Example))
	}
	list := []string{}
	var wrong []error
	for _, text := range texts {
		element, err := s.kind.text(s, text)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		list = append(list, element.(string))
	}
	return list, errors.Join(wrong...)
}

// SplitList cuts a text into the elements of a list.
func SplitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// readTable reads a table of the file, or a text of pairs name=value with spaces
// between them.
func (s *Setting) readTable(value any) (any, error) {
	table := map[string]any{}
	var wrong []error
	add := func(name, text string) {
		read, err := s.kind.text(s, name+"="+text)
		if err != nil {
			wrong = append(wrong, &entryError{name, err})
			return
		}
		table[name] = read
	}
	switch v := value.(type) {
	case string:
		for _, pair := range strings.Fields(v) {
			name, text, _ := strings.Cut(pair, "=")
			add(name, text)
		}
	case map[string]any:
		for name, element := range v {
			text, ok := element.(string)
			if !ok {
				wrong = append(wrong, &entryError{name, stele.Messagef("config.not-a-text", "a text in quotation marks belongs here")})
				continue
			}
			add(name, text)
		}
	default:
		return nil, stele.Messagef("config.not-a-table", "a table belongs here; an example is {example}", s.InFile(s.Example))
	}
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return table, errors.Join(wrong...)
}

// entryError says which entry of a table is wrong.
type entryError struct {
	name string
	err  error
}

func (e *entryError) Error() string { return e.err.Error() }
func (e *entryError) Unwrap() error { return e.err }

// orNothing allows an empty text as a value of a kind.
func orNothing(read func(*Setting, string) (any, error)) func(*Setting, string) (any, error) {
	return func(s *Setting, text string) (any, error) {
		if text == "" {
			return "", nil
		}
		return read(s, text)
	}
}

func readFolder(_ *Setting, text string) (any, error) {
	if text == "" {
		return nil, stele.Messagef("config.folder-missing", "the name of a folder belongs here")
	}
	return text, nil
}

func readBool(_ *Setting, text string) (any, error) {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return nil, stele.Messagef("value.not-a-boolean", `"{value}" is neither true nor false`, text)
}

func readChoice(s *Setting, text string) (any, error) {
	if slices.Contains(s.Choices, text) {
		return text, nil
	}
	return nil, stele.Messagef("config.not-a-choice", `"{value}" is none of {choices}`, text, strings.Join(s.Choices, ", "))
}

func readStatus(s *Setting, text string) (any, error) {
	if _, err := readChoice(s, text); err != nil {
		return nil, err
	}
	return strconv.Atoi(text)
}

func readCount(_ *Setting, text string) (any, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil, stele.Messagef("config.number-out-of-range", `"{value}" is not a number from 0 to {limit}`, text, math.MaxInt32)
	}
	return int(n), nil
}

func readPositive(s *Setting, text string) (any, error) {
	n, err := readCount(s, text)
	if err == nil && n.(int) == 0 {
		return nil, stele.Messagef("config.number-zero", "at least 1 belongs here")
	}
	return n, err
}

// maxDuration is longer than any useful setting.
const maxDuration = 10 * 365 * 24 * time.Hour

func readDuration(_ *Setting, text string) (any, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return nil, stele.Messagef("config.not-a-duration", `"{value}" is not a duration; write a number with its unit, such as 30s, 5m or 1h30m`, text)
	case d < 0 || d > maxDuration:
		return nil, stele.Messagef("config.duration-out-of-range", `"{duration}" is not between 0s and ten years`, text)
	}
	return d, nil
}

func readTimeout(s *Setting, text string) (any, error) {
	d, err := readDuration(s, text)
	if err == nil && d.(time.Duration) == 0 {
		return nil, stele.Messagef("config.time-limit-missing", "without a limit a slow client could keep a connection for ever; write how long it may take, such as 30s")
	}
	return d, err
}

// Limits on leases. A server renews one three times in its life, and its clock is not exact.
const (
	minLease = time.Second
	maxLease = lease.Longest
)

func readLease(s *Setting, text string) (any, error) {
	d, err := readDuration(s, text)
	if life, ok := d.(time.Duration); err == nil && (!ok || life < minLease || life > maxLease) {
		return nil, stele.Messagef("config.lease-out-of-range", "a lease lasts {least} at least and {most} at most; write a duration between them, such as 20s", minLease, maxLease)
	}
	return d, err
}

// sizeUnits are the units of sizes, in bytes.
var sizeUnits = map[string]int64{
	"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
}

func readSize(_ *Setting, text string) (any, error) {
	n, err := ParseSize(text)
	return n, err
}

// ParseSize reads a size in bytes, with a unit such as MB or GiB, or without.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "bBkKmMgGiI ")
	n, err := strconv.ParseUint(digits, 10, 40)
	unit, known := sizeUnits[strings.ToLower(strings.TrimSpace(text[len(digits):]))]
	if err != nil || !known || n > uint64(math.MaxInt64/unit) {
		return 0, stele.Messagef("config.not-a-size", `"{value}" is not a size; write a number with its unit, such as 64MB or 1GiB`, text)
	}
	return int64(n) * unit, nil
}

// readHead reads how large the header of a request may be.
func readHead(s *Setting, text string) (any, error) {
	n, err := readSize(s, text)
	if err == nil && (n.(int64) < 8<<10 || n.(int64) > 1<<20) {
		return nil, stele.Messagef("config.header-size-out-of-range", `"{size}" is not between 8KiB, which an identifier may need, and 1MiB`, text)
	}
	return n, err
}

func readAddress(s *Setting, text string) (any, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		if _, err := strconv.ParseUint(text, 10, 16); err == nil {
			return nil, stele.Messagef("config.port-without-address", `"{port}" is a port alone; write :{port} for all addresses of this machine, or 127.0.0.1:{port}`, text)
		}
		return nil, stele.Messagef("config.not-an-address", `"{value}" is not an address; write HOST:PORT, such as {example} (an IPv6 address in brackets, [::1]:8080)`, text, s.Example)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, stele.Messagef("config.not-a-port", `"{port}" is not a port, which is a number from 0 to 65535`, port)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !isHost(host) {
		return nil, stele.Messagef("config.not-a-host", `"{value}" is neither the name of a host nor an IP address`, host)
	}
	return text, nil
}

// readSource reads an address of this machine, without a port.
func readSource(s *Setting, text string) (any, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.IsUnspecified() || addr.IsMulticast() {
		return nil, stele.Messagef("config.not-an-ip-address", `"{value}" is not the address of a machine; write an IP address without a port, such as {example}`, text, s.Example)
	}
	return addr.Unmap().String(), nil
}

func readIdentity(_ *Setting, text string) (any, error) {
	return text, dnsd.CheckIdentity(text)
}

// isHost reports whether a text can be the name of a host.
func isHost(text string) bool {
	for label := range strings.SplitSeq(strings.TrimSuffix(text, "."), ".") {
		bad := strings.TrimFunc(strings.ToLower(label), func(r rune) bool {
			return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-'
		})
		if label == "" || len(label) > 63 || bad != "" {
			return false
		}
	}
	return len(text) <= 253
}

// readBase reads the server's public address.
func readBase(_ *Setting, text string) (any, error) {
	o := httpd.Options{Base: strings.TrimRight(text, "/")}
	return o.Base, o.Validate()
}

// readTimeGate reads the address of an archive, to which the addresses of pages are appended.
func readTimeGate(_ *Setting, text string) (any, error) {
	text = strings.TrimRight(text, "/")
	t := stele.Target{URL: text}
	if err := stele.CheckURL(text); err != nil {
		return nil, err
	}
	if p := t.Protocol(); p != "http" && p != "https" || strings.ContainsAny(text, "?#") {
		return nil, stele.Messagef("config.timegate-invalid", `"{url}" is not the address of a TimeGate; write one such as https://web.archive.org/web`, text)
	}
	return text, nil
}

func readHost(_ *Setting, text string) (any, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if _, err := purl.New(text); err != nil {
		return nil, err
	}
	return text, nil
}

func readShoulder(_ *Setting, text string) (any, error) {
	if _, err := ark.ParseChecked(text); err != nil {
		if e, ok := errors.AsType[*stele.SyntaxError](err); ok {
			err = e.Reason
		}
		return nil, err
	}
	return text, nil
}

// readHandleIdentity reads an index and a handle, 300:0.NA/20.500.12345.
func readHandleIdentity(s *Setting, text string) (any, error) {
	index, handle, ok := strings.Cut(text, ":")
	if n, err := strconv.ParseUint(index, 10, 32); !ok || err != nil || n == 0 || !strings.Contains(handle, "/") {
		return nil, stele.Messagef("config.not-a-handle-identity", `"{value}" is not an index and a handle; write them such as {example}`, text, s.Example)
	}
	return text, nil
}

// readGlobal reads a pair scheme=URL, and returns the URL.
func readGlobal(_ *Setting, text string) (any, error) {
	scheme, link, _ := strings.Cut(text, "=")
	schemes, err := all.New(all.Config{Now: func() time.Time { return time.Time{} }, PURLHosts: purl.DefaultHosts()})
	if err != nil {
		return nil, err
	}
	if schemes.Lookup(scheme) == nil {
		return nil, stele.Messagef("scheme.unknown", `"{scheme}" is not a scheme; there are {schemes}`, scheme, strings.Join(schemes.Names(), ", "))
	}
	o := httpd.Options{Global: map[string]string{scheme: link}}
	return link, o.Validate()
}

// originsKind and originURLKind are the servers that answer for names that they made, and where they are asked.
var (
	originsKind   = kind{"hosts", listForm, readOrigin}
	originURLKind = kind{"URL", textForm, readOriginURL}
)

func readOrigin(_ *Setting, text string) (any, error) {
	_, err := resolver.NewOrigins([]string{text}, "http://{host}/{label}")
	return strings.ToLower(strings.TrimSpace(text)), err
}

func readOriginURL(_ *Setting, text string) (any, error) {
	_, err := resolver.NewOrigins(nil, text)
	return text, err
}

// readSyslog reads where a syslog daemon is.
func readSyslog(_ *Setting, text string) (any, error) {
	if _, _, err := audit.ParseSyslog(text); err != nil {
		return nil, err
	}
	return text, nil
}

// followKind is how often a server reads the changes of other servers.
var followKind = kind{"duration", textForm, readFollow}

// Bounds of followKind: a server that reads more often does little else; one that reads
// less often gives outdated answers.
const followOften, followSeldom = 10 * time.Millisecond, 10 * time.Second

func readFollow(s *Setting, text string) (any, error) {
	d, err := readDuration(s, text)
	if err == nil && (d.(time.Duration) < followOften || d.(time.Duration) > followSeldom) {
		return nil, stele.Messagef("config.follow-interval-out-of-range", "a server looks for changes every {shortest} at most, and every {longest} at least; write a time between, such as 250ms", followOften, followSeldom)
	}
	return d, err
}

func readStore(_ *Setting, text string) (any, error) { return text, postgres.CheckURL(text) }
