package remote

import (
	"crypto/x509"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
)

// ReadToken reads a token from a file. Invalid if the file has none.
func ReadToken(file string) (string, error) {
	const most = 4096
	text, err := disk.ReadSome(file, most)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(text) > most {
		return "", stele.Errorf("open", stele.ID{}, stele.Invalid, "token-file.empty", `"{file}" has no token in it; put the one there that 'stele token create' printed`, file)
	}
	return token, nil
}

// ReadRoots returns the certificate authorities of the system and those in a file (PEM). Invalid
// if the file has none.
func ReadRoots(file string) (*x509.CertPool, error) {
	const most = 1 << 20
	text, err := disk.ReadSome(file, most)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // a system without any
	}
	if len(text) > most || !roots.AppendCertsFromPEM(text) {
		return nil, stele.Errorf("open", stele.ID{}, stele.Invalid, "ca-file.certificate-missing", `"{file}" has no certificate in it; name a file in PEM, which has -----BEGIN CERTIFICATE-----`, file)
	}
	return roots, nil
}
