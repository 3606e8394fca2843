package deposit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
)

// Limits on an SFTP server.
const (
	maxKeyFile   = 64 << 10
	maxListing   = 64 << 20 // bytes that it may send for the list of one folder, which the library holds in memory
	maxDepth     = 3        // folders in each other that are listed
	sftpRequests = 16       // of one file at once
)

// sftpServer is a place at a server that speaks SFTP. It connects when something is asked for, and again after a connection was lost.
type sftpServer struct {
	address string
	config  *ssh.ClientConfig
	root    string
	dial    func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	conn *sftpConn // nil: there is none
	made map[string]bool

	listing int64 // in tests; 0: maxListing
}

// sftpConn is a connection.
type sftpConn struct {
	net    *metered
	ssh    *ssh.Client
	client *sftp.Client
}

// metered is a connection that ends when a budget of bytes was read.
type metered struct {
	net.Conn
	budget atomic.Int64 // 0: any number
	over   atomic.Bool  // the budget was read, and the connection ended by that
}

var errBudget = failf(stele.Invalid, "deposit.server-sends-too-much", "the server sends more than it was asked for")

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if m.budget.Load() > 0 && m.budget.Add(-int64(n)) <= 0 {
		m.over.Store(true)
		_ = m.Conn.Close() // the connection has to end
		return 0, errBudget
	}
	return n, err
}

func openSFTP(p Place, a Access) (*sftpServer, error) {
	if a.Credentials == "" {
		return nil, failf(stele.Invalid, "deposit.sftp-key-missing", "an SFTP server needs the private key of its user; name its file with --credentials, or with the setting escrow-credentials")
	}
	text, err := disk.ReadSome(a.Credentials, maxKeyFile)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return nil, failf(stele.Invalid, "deposit.sftp-key-locked", "the private key in {file} has a passphrase, which a program can't be asked for; make one without, for this server alone", a.Credentials)
	} else if err != nil {
		return nil, failf(stele.Invalid, "deposit.sftp-key-unreadable", "{file} is not a private key as ssh-keygen writes it", a.Credentials)
	}
	address := net.JoinHostPort(p.url.Hostname(), "22")
	if port := p.url.Port(); port != "" {
		address = net.JoinHostPort(p.url.Hostname(), port)
	}
	check, algorithms, err := hostKeys(a.KnownHosts, address)
	if err != nil {
		return nil, err
	}
	config := &ssh.ClientConfig{User: p.url.User.Username(), Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: check, HostKeyAlgorithms: algorithms, Timeout: Connecting, ClientVersion: "SSH-2.0-stele"}
	return &sftpServer{address: address, config: config, root: path.Clean(p.url.Path), dial: a.Dial, made: map[string]bool{}}, nil
}

// hostKeys returns what checks the key of a server, and by which algorithms the server may prove that it has it: those of the keys that
// are known, since a server may have others too.
func hostKeys(files []string, address string) (ssh.HostKeyCallback, []string, error) {
	files = slices.DeleteFunc(slices.Clone(files), func(name string) bool {
		_, err := os.Stat(name)
		return errors.Is(err, fs.ErrNotExist)
	})
	unknown := failf(stele.Forbidden, "deposit.host-unknown", "the key of {server} is not known; write it to a file of known hosts, with 'ssh-keyscan' and after a look whether it is the right one, and name the file with --known-hosts", address)
	if len(files) == 0 {
		return nil, nil, unknown
	}
	check, err := knownhosts.New(files...)
	if err != nil {
		return nil, nil, failf(stele.Invalid, "deposit.known-hosts-unreadable", "the files of known hosts can't be read: {cause}", err)
	}
	// No server has this key, so that the error names those that are known.
	known, _ := errors.AsType[*knownhosts.KeyError](check(address, &net.TCPAddr{IP: net.IPv4zero}, noKey{}))
	if known == nil || len(known.Want) == 0 {
		return nil, nil, unknown
	}
	var algorithms []string
	for _, k := range known.Want {
		if t := k.Key.Type(); t == ssh.KeyAlgoRSA {
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			algorithms = append(algorithms, t)
		}
	}
	return func(hostname string, remote net.Addr, key ssh.PublicKey) error {
		if err := check(hostname, remote, key); err != nil {
			return failf(stele.Forbidden, "deposit.host-key-other", "{server} has another key than the one that is known: it is another server, or its key was changed", address)
		}
		return nil
	}, algorithms, nil
}

// KnownHosts returns the files of known hosts: the one that is named, or those of the system and of the user of this process.
func KnownHosts(file string) []string {
	if file != "" {
		return []string{file}
	}
	list := []string{"/etc/ssh/ssh_known_hosts"}
	if home, err := os.UserHomeDir(); err == nil {
		list = append(list, filepath.Join(home, ".ssh", "known_hosts"))
	}
	return list
}

// noKey is a public key that no server has.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("none") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errBudget }

// connect returns the connection, or makes one.
func (s *sftpServer) connect(ctx context.Context) (*sftpConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		return s.conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, Connecting)
	defer cancel()
	raw, err := s.dial(ctx, "tcp", s.address)
	if err != nil {
		return nil, s.told(err)
	}
	m := &metered{Conn: raw}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	c, channels, requests, err := ssh.NewClientConn(m, s.address, s.config)
	if err != nil {
		_ = raw.Close()
		return nil, s.told(err)
	}
	client := ssh.NewClient(c, channels, requests)
	files, err := sftp.NewClient(client, sftp.UseConcurrentWrites(true), sftp.MaxConcurrentRequestsPerFile(sftpRequests))
	if err != nil {
		_ = client.Close()
		return nil, s.told(err)
	}
	s.conn = &sftpConn{m, client, files}
	return s.conn, nil
}

// drop forgets a connection that was lost.
func (s *sftpServer) drop(c *sftpConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == c {
		s.conn = nil
	}
	_ = c.client.Close()
	_ = c.ssh.Close()
}

// with calls do with a connection, and ends the connection if that takes too long, or if it was lost.
func (s *sftpServer) with(ctx context.Context, do func(c *sftpConn) error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { s.drop(c) })
	err = do(c)
	stop()
	if err == nil {
		return nil
	}
	if c.net.over.Load() { // the library only says that the connection was lost
		err = errBudget
	}
	if isLost(err) {
		s.drop(c)
	}
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return s.told(err)
}

// isLost reports whether an error is not an answer of the server.
func isLost(err error) bool {
	if _, answered := errors.AsType[*sftp.StatusError](err); answered || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist) {
		return false
	}
	_, ours := errors.AsType[*stele.Error](err)
	return !ours || errors.Is(err, errBudget)
}

// told gives an error of the server its kind.
func (s *sftpServer) told(err error) error {
	if ours, ok := errors.AsType[*stele.Error](err); ok {
		if _, own := errors.AsType[*net.OpError](err); !own {
			return ours
		}
		return failf(ours.Kind, "deposit.server-not-allowed", "{server} is not reached: {cause}", s.address, ours.Err)
	}
	status, _ := errors.AsType[*sftp.StatusError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &stele.Error{Op: op, Kind: stele.NotFound, Err: err}
	case errors.Is(err, fs.ErrPermission):
		return failf(stele.Forbidden, "deposit.sftp-forbidden", "{server} does not let the user {user} do that in {folder}", s.address, s.config.User, s.root)
	case status != nil:
		return failf(stele.Invalid, "deposit.sftp-refused", "{server} refuses: {cause}", s.address, err)
	case isRefusedKey(err):
		return failf(stele.Unauthenticated, "deposit.sftp-key-refused", "{server} does not accept the key for the user {user}", s.address, s.config.User)
	}
	return failf(stele.Unavailable, "deposit.server-unreachable", "{server} can't be reached, or the connection was lost: {cause}", s.address, err)
}

// isRefusedKey reports whether a server did not let the user in. The package has no type for that.
func isRefusedKey(err error) bool {
	return err != nil && bytes.Contains([]byte(err.Error()), []byte("unable to authenticate"))
}

func (s *sftpServer) at(name string) string { return path.Join(s.root, name) }

// Put writes a file beside its place, and gives it its name when it is on the disk. A rename of SFTP never replaces a file.
func (s *sftpServer) Put(ctx context.Context, name string, data []byte) error {
	return s.with(ctx, func(c *sftpConn) error {
		final := s.at(name)
		if err := s.makeFolders(c, path.Dir(final)); err != nil {
			return err
		}
		part := path.Join(path.Dir(final), partial+rand.Text())
		f, err := c.client.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		if err != nil {
			return err
		}
		_, err = f.ReadFromWithConcurrency(bytes.NewReader(data), sftpRequests)
		if err == nil {
			if _, can := c.client.HasExtension("fsync@openssh.com"); can {
				err = f.Sync()
			}
		}
		if err = errors.Join(err, f.Close()); err == nil {
			err = c.client.Rename(part, final)
		}
		if err == nil {
			return nil
		}
		_ = c.client.Remove(part) // it was not given its name
		if _, there := c.client.Lstat(final); there == nil {
			return nil
		}
		return err
	})
}

// makeFolders makes a folder and those that it is in, from that of the place on.
func (s *sftpServer) makeFolders(c *sftpConn, folder string) error {
	s.mu.Lock()
	known := s.made[folder]
	s.mu.Unlock()
	if known {
		return nil
	}
	if _, err := c.client.Stat(folder); err != nil {
		if !errors.Is(err, fs.ErrNotExist) || len(folder) < len(s.root) {
			return err
		}
		if err := s.makeFolders(c, path.Dir(folder)); err != nil {
			return err
		}
		if err := c.client.Mkdir(folder); err != nil {
			if _, there := c.client.Stat(folder); there != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	s.made[folder] = true
	s.mu.Unlock()
	return nil
}

// Get returns what a file has.
func (s *sftpServer) Get(ctx context.Context, name string, most int64) (data []byte, err error) {
	err = s.with(ctx, func(c *sftpConn) error {
		f, err := c.client.Open(s.at(name))
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Size() < 0 || info.Size() > most {
			return tooLong(name, most)
		}
		data = make([]byte, info.Size())
		n, err := io.ReadFull(f, data)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			data, err = data[:n], nil // the caller knows how long it should be
		}
		return err
	})
	return data, err
}

// List lists the files of a folder, and of folders in it.
func (s *sftpServer) List(ctx context.Context, folder string, each func(name string, size int64) error) error {
	var own error // of the caller
	err := s.with(ctx, func(c *sftpConn) error {
		defer c.net.budget.Store(0)
		return s.list(ctx, c, folder, maxDepth, func(name string, size int64) error {
			own = each(name, size)
			return own
		})
	})
	if own != nil {
		return own
	}
	return err
}

func (s *sftpServer) list(ctx context.Context, c *sftpConn, folder string, depth int, each func(name string, size int64) error) error {
	c.net.budget.Store(cmp.Or(s.listing, maxListing))
	files, err := c.client.ReadDirContext(ctx, s.at(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, f := range files {
		name := fmt.Sprintf("%s/%s", folder, f.Name())
		switch {
		case f.IsDir() && depth > 1:
			err = s.list(ctx, c, name, depth-1, each)
		case f.Mode().IsRegular() && !isPartial(f.Name()):
			err = each(name, f.Size())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close ends the connection.
func (s *sftpServer) Close() error {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		s.drop(c)
	}
	return nil
}
