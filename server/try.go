package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/store/postgres"
)

// Try tries the files, sockets and databases that a server will need, as the user who runs it,
// and adds what fails to the problems of the configuration.
func Try(ctx context.Context, c *config.Config, now func() time.Time, log *slog.Logger) {
	if c.TLSCert != "" && c.TLSKey != "" {
		if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
			name := "tls-cert"
			if path, ok := errors.AsType[*fs.PathError](err); ok && path.Path == c.TLSKey {
				name = "tls-key"
			}
			c.Wrong(name, "config-check.certificate-unusable", "the certificate and its key can't be used: {cause}; let user {user} read both files, and see that they belong together", err, os.Getuid())
		}
	}
	if c.ACMERoot != "" {
		if _, err := os.ReadFile(c.ACMERoot); err != nil {
			c.Wrong("acme-root", "config-check.file-unreadable", "{cause}; let user {user} read it", err, os.Getuid())
		}
	}
	if _, err := c.Issuers(); err != nil && len(c.Problems) == 0 {
		c.Wrong("issuer-secret-file", "config-check.file-unreadable", "{cause}; let user {user} read it", err, os.Getuid())
	}
	if c.Store == "" {
		tryFolder(c, "data", c.Data)
	} else {
		tryDatabase(ctx, c, now, log)
	}
	if c.ACMEStorage != "" && len(c.ACMEDomains) > 0 {
		tryFolder(c, "acme-storage", c.ACMEStorage)
	}
	if c.SearchIndex != "" {
		tryFolder(c, "search-index", c.SearchIndex)
	}
	if c.LogFile != "" {
		tryFolder(c, "log-file", filepath.Dir(c.LogFile))
	}
	for _, at := range []struct {
		name, network string
		addresses     []string
	}{
		{"http", "tcp", []string{c.HTTP}}, {"https", "tcp", []string{c.HTTPS}}, {"metrics", "tcp", []string{c.Metrics}},
		{"dns", "udp", c.DNS}, {"dns", "tcp", c.DNS}, {"dns-tls", "tcp", c.DNSTLS}, {"hdl", "udp", c.Handle}, {"hdl", "tcp", c.Handle},
	} {
		for _, address := range at.addresses {
			if address != "" {
				trySocket(ctx, c, at.name, at.network, address)
			}
		}
	}
	for _, address := range c.NotifySource {
		trySocket(ctx, c, "notify-source", "udp", net.JoinHostPort(address, "0"))
	}
}

// tryFolder makes a file in a folder, or in the one above in which it would be made, and
// removes the file.
func tryFolder(c *config.Config, name, folder string) {
	at, err := filepath.Abs(folder)
	if err != nil {
		c.Wrong(name, "", "{cause}", err)
		return
	}
	for {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(at) == at {
			break
		}
		at = filepath.Dir(at)
	}
	file, err := os.CreateTemp(at, ".stele-try-")
	if err != nil {
		c.Wrong(name, "config-check.folder-not-writable", "user {user} can't write to {folder} ({cause}); give the folder to the user of the server, and run this as that user", os.Getuid(), at, err)
		return
	}
	if err := errors.Join(file.Close(), os.Remove(file.Name())); err != nil {
		c.Wrong(name, "", "{cause}", err)
	}
}

// trySocket opens a socket and closes it.
func trySocket(ctx context.Context, c *config.Config, name, network, address string) {
	var config net.ListenConfig
	var socket interface{ Close() error }
	var err error
	if network == "udp" {
		socket, err = config.ListenPacket(ctx, network, address)
	} else {
		socket, err = config.Listen(ctx, network, address)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		c.Wrong(name, "config-check.address-in-use", "a program listens on {address} already; if it is the server itself, all is well, or else end it", address)
	case errors.Is(err, syscall.EACCES):
		c.Wrong(name, "config-check.port-not-permitted", "user {user} may not listen on {address}; choose a port from 1024 on, or give the unit AmbientCapabilities=CAP_NET_BIND_SERVICE as deploy/stele.service does", os.Getuid(), address)
	case err != nil:
		c.Wrong(name, "config-check.listening-failed", "listening on {address} fails: {cause}", address, err)
	default:
		_ = socket.Close() // no client has used it
	}
}

// tryDatabase connects to the database and reads the version of its tables.
func tryDatabase(ctx context.Context, c *config.Config, now func() time.Time, log *slog.Logger) {
	store, err := postgres.Open(ctx, c.Store, postgres.Options{Now: now, Log: log, Brief: true})
	if err != nil {
		c.Wrong("store", "", "{cause}", stele.Reason(err))
		return
	}
	if err := store.Close(); err != nil {
		c.Wrong("store", "", "{cause}", stele.Reason(err))
	}
}
