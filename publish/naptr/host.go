package naptr

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

// Host is where a resolver answers over HTTP. The zero host is not a resolver.
type Host struct {
	Name string // absolute: id.example.org.
	Port uint16
}

// ParseHost reads Publication.Resolver, which was checked when it was written.
func ParseHost(text string) (h Host) {
	if text == "" {
		return Host{}
	}
	name, port, given := strings.Cut(text, ":")
	h = Host{Name: name + ".", Port: 80}
	if n, err := strconv.ParseUint(port, 10, 16); given && err == nil {
		h.Port = uint16(n)
	}
	return h
}

// IsZero reports whether there is no resolver.
func (h Host) IsZero() bool { return h.Name == "" }

// url is the address of the resolver, without a slash at its end.
func (h Host) url() string {
	name := strings.TrimSuffix(h.Name, ".")
	switch h.Port {
	case 80:
		return "http://" + name
	case 443:
		return "https://" + name
	}
	return "http://" + name + ":" + strconv.Itoa(int(h.Port))
}

// Flag says by which protocol clients ask the resolver.
func (h Host) Flag() ddds.Flag {
	protocol, _, _ := strings.Cut(h.url(), ":")
	flag, err := ddds.Resolved(protocol)
	if err != nil {
		return ddds.FlagNone
	}
	return flag
}

// Service is where the resolver gives a service for an identifier (THTTP, RFC 2169).
func (h Host) Service(s stele.Service, id string) string {
	return h.url() + "/uri-res/" + string(s) + "?" + escapeURL(id)
}

// typed is where the resolver gives a service for an identifier as one media type: the
// r-component says which (RFC 8141, section 2.3.1), since a location is all that clients
// of a rule get.
func (h Host) typed(s stele.Service, id, media string) string {
	of := ""
	if s != stele.N2L {
		of = "s=" + string(s) + "&"
	}
	return h.page(id) + "?+" + of + "t=" + strings.ReplaceAll(escapeURL(media), "&", "%26")
}

// page is the resolver's page about an identifier.
func (h Host) page(id string) string { return h.url() + "/" + escapeURL(id) }

// escapeURL writes an identifier so that it can stand in a URL.
func escapeURL(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; IsLabelByte(c) || strings.IndexByte(".~:/@!$&'()*+,;=", c) >= 0 || c == '%' && isTriplet(id[i:]) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// isTriplet reports whether s begins with a percent-encoding, which is part of the
// names that have it.
func isTriplet(s string) bool {
	if len(s) < 3 {
		return false
	}
	_, err := strconv.ParseUint(s[1:3], 16, 8)
	return err == nil
}
