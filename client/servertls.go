package client

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/endpoint"
)

// Pin is the SHA-256 digest of a public key, as certificates have it (its
// SubjectPublicKeyInfo). A server whose key has it is the right one, whichever authority
// signed its certificate (RFC 7858, section 4.2).
type Pin [sha256.Size]byte

// pinPrefix names the digest; no other is supported.
const pinPrefix = "sha256/"

// ParsePin reads sha256/ and the digest in base64, as other programs print it.
func ParsePin(text string) (p Pin, err error) {
	encoded, ok := strings.CutPrefix(text, pinPrefix)
	digest, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !ok || err != nil || len(digest) != len(p) {
		return Pin{}, invalid("dns.server-pin-invalid", `"{pin}" is not a pin; write sha256/ and the SHA-256 digest of the public key in base64, 44 characters`, text)
	}
	return Pin(digest), nil
}

// PinOf returns the pin of a certificate's key.
func PinOf(cert *x509.Certificate) Pin { return sha256.Sum256(cert.RawSubjectPublicKeyInfo) }

// String returns the pin as ParsePin reads it.
func (p Pin) String() string { return pinPrefix + base64.StdEncoding.EncodeToString(p[:]) }

// maxPins is how many pins of a server are kept: its key, and one that is to come.
const maxPins = 8

// parseTLSServer reads HOST[:PORT][?pin=PIN][#NAME].
func parseTLSServer(text string) (s NameServer, err error) {
	u, err := url.Parse("tls://" + text)
	if err != nil || u.User != nil || u.Path != "" && u.Path != "/" || u.Opaque != "" {
		return s, invalid("dns.tls-server-invalid", `"{server}" is not a server for DNS over TLS; write tls://192.0.2.1#dns.example.org`, "tls://"+text)
	}
	host, port, err := hostAndPort(u, dotPort)
	if err != nil {
		return s, err
	}
	s.at, s.name, s.hello = net.JoinHostPort(host, port), host, host
	if s.pins, err = parsePins(u.RawQuery); err != nil {
		return NameServer{}, err
	}
	switch name := strings.ToLower(strings.TrimSuffix(u.Fragment, ".")); {
	case name != "" && !isHost(name):
		return NameServer{}, invalid("dns.server-certificate-name-invalid", `"{name}" is not a name that a certificate could be for; write tls://192.0.2.1#dns.example.org, and pins before the #`, u.Fragment)
	case name != "":
		s.name, s.hello = name, name
	case len(s.pins) > 0:
		s.name = ""
	}
	return s, nil
}

// parsePins reads pin=PIN&pin=PIN. In base64 a plus is a plus, and not a blank.
func parsePins(query string) (list []Pin, err error) {
	if query == "" {
		return nil, nil
	}
	for field := range strings.SplitSeq(query, "&") {
		text, ok := strings.CutPrefix(field, "pin=")
		if !ok {
			return nil, invalid("dns.server-option-unknown", `"{option}" says nothing about a name server; write ?pin=sha256/...`, field)
		}
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
		pin, err := ParsePin(text)
		if err != nil {
			return nil, err
		}
		if list = append(list, pin); len(list) > maxPins {
			return nil, invalid("dns.server-pins-too-many", "more than {limit} pins for one name server; keep those of its keys", maxPins)
		}
	}
	return list, nil
}

// parseHTTPSServer reads HOST[:PORT]/PATH, perhaps followed by the {?dns} of RFC 8484.
func parseHTTPSServer(text string) (s NameServer, err error) {
	u, err := url.Parse("https://" + strings.TrimSuffix(text, "{?dns}"))
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return s, invalid("dns.https-server-invalid", `"{server}" is not a server for DNS over HTTPS; write https://dns.example.org/dns-query`, "https://"+text)
	}
	if _, _, err := hostAndPort(u, httpsPort); err != nil {
		return s, err
	}
	if u.Path == "" || u.Path == "/" {
		u.Path, u.RawPath = "/dns-query", ""
	}
	s.url = u.String()
	return s, nil
}

// hostAndPort returns the host of a URL, in lower case, and its port.
func hostAndPort(u *url.URL, usual int) (host, port string, err error) {
	host = strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if !isHost(host) {
		return "", "", invalid("dns.server-host-invalid", `"{host}" is not a host; write its name or its address, IPv6 in brackets`, u.Host)
	}
	if port = u.Port(); port == "" {
		return host, strconv.Itoa(usual), nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", invalid("dns.server-port-invalid", `"{port}" is not a port; write a number from 1 to 65535`, port)
	}
	return host, port, nil
}

// isHost reports whether a text is the name of a host or its address.
func isHost(text string) bool {
	addr, err := netip.ParseAddr(text)
	return err == nil && addr.Zone() == "" || endpoint.IsHostName(text)
}

// tls returns the TLS configuration for the server: strict, so that the client sends no
// question to an unauthenticated server (RFC 8310, section 5). A clock of nil is the
// system's.
func (s *NameServer) tls(roots *x509.CertPool, now func() time.Time) *tls.Config {
	c := &tls.Config{
		ServerName: s.hello, RootCAs: roots, Time: now,
		MinVersion: tls.VersionTLS12, NextProtos: []string{"dot"}, // RFC 7858, section 7
	}
	if len(s.pins) == 0 {
		return c
	}
	c.InsecureSkipVerify = s.name == "" // only the pin decides
	c.VerifyConnection = func(state tls.ConnectionState) error { return checkPins(s.pins, state.PeerCertificates) }
	return c
}

var errPin = stele.Messagef("dns.server-pin-unknown", "the server's key has none of the pins")

// checkPins checks the server's own certificate only. The server need not have the keys of
// the other certificates that it sends.
func checkPins(pins []Pin, list []*x509.Certificate) error {
	if len(list) == 0 {
		return errPin
	}
	got := PinOf(list[0])
	for i := range pins {
		if subtle.ConstantTimeCompare(pins[i][:], got[:]) == 1 {
			return nil
		}
	}
	return stele.Messagef("dns.server-pin-differs", "{cause}: it is {pin}", errPin, got)
}
