package bundle

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/proof"
	"github.com/stele-id/stele/transparency"
)

// noteText returns what the registry signs.
func noteText(origin string, manifest []byte) string {
	return origin + "\n" + noteLine + "\n" + base64.StdEncoding.EncodeToString(manifest) + "\n"
}

func (r *reader) readRegistryNote(in io.Reader) error {
	text, err := whole(in)
	if err != nil {
		return err
	}
	said, err := transparency.OpenText(text, r.keys)
	if err != nil {
		return err
	}
	if said != noteText(r.report.Head.Origin, r.report.Manifest[:]) {
		return wrong("bundle.signature-of-other", "the registry has signed another manifest than this one")
	}
	return nil
}

// readCosignatures reads lines of witnesses, which belong to the checkpoint.
func (r *reader) readCosignatures(in io.Reader) error {
	text, err := whole(in)
	if err != nil {
		return err
	}
	if len(text) == 0 || !strings.HasSuffix(string(text), "\n") {
		return wrong("bundle.cosignatures-unfinished", "it has no line of a witness, or the last line has no end")
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "— ") {
			return wrong("bundle.cosignature-malformed", "a line is not the signature of a witness")
		}
	}
	var witnesses []transparency.PublicKey
	for _, k := range r.o.Keys {
		if k.Cosign {
			witnesses = append(witnesses, k)
		}
	}
	r.report.Cosigned = string(text)
	r.report.Cosignatures, err = transparency.Cosignatures(r.report.Checkpoint, text, witnesses)
	return err
}

// statement returns what a namespace signs, in the form of package proof.
func (s *Signature) statement() (id stele.ID, out stele.Signature, err error) {
	if id, err = stele.NewID(s.Scheme, s.Namespace); err != nil {
		return id, out, err
	}
	sum, err := hex.DecodeString(s.Manifest)
	if err != nil || len(sum) != len(out.SHA256) {
		return id, out, wrong("bundle.signature-malformed", "the digest is not SHA-256 in hexadecimal digits")
	}
	out = stele.Signature{Size: s.Size, Type: SignatureType, Date: s.Date, Key: s.Key, JWS: s.JWS}
	copy(out.SHA256[:], sum)
	return id, out, nil
}

// file returns the name of the file of the signature: one for each namespace and key.
func (s *Signature) file() string {
	sum := sha256.Sum256([]byte(s.Scheme + " " + s.Namespace + " " + s.Key))
	return fmt.Sprintf(fileSigned, hex.EncodeToString(sum[:8]))
}

func (r *reader) readSignature(in io.Reader) error {
	text, err := whole(in)
	if err != nil {
		return err
	}
	var s Signature
	if err := parseJSON(text, &s); err != nil {
		return err
	}
	if last := r.tags[len(r.tags)-1].name; r.now != s.file() || strings.HasPrefix(last, "signatures/namespace-") && last >= r.now {
		return errOrder
	}
	if err := r.verify(&s); err != nil {
		return err
	}
	r.report.Signatures = append(r.report.Signatures, s)
	return nil
}

// verify checks the signature of a namespace with the keys that the namespace has in the bundle.
func (r *reader) verify(s *Signature) error {
	id, said, err := s.statement()
	if err != nil {
		return err
	}
	if said.SHA256 != r.report.Manifest || said.Size != r.report.manifest {
		return wrong("bundle.signature-of-other-manifest", "the namespace has signed another manifest than this one")
	}
	for _, n := range r.report.spaces {
		if n.Scheme == s.Scheme && n.Prefix == s.Namespace {
			_, err := proof.Verify(n.Keys, id, said, r.o.Now)
			return err
		}
	}
	return wrong("bundle.signature-of-unknown", "the namespace {namespace} is not in the bundle", s.Namespace)
}

// Sign adds the signatures of the namespaces whose key is given to a bundle, after it has checked all of it. The file is replaced by
// one that has them. It returns the signatures that are new or were replaced. NotFound if no namespace of the bundle has the key.
func Sign(ctx context.Context, path string, key crypto.Signer, o Options) ([]Signature, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, disk.FileError(err)
	}
	defer func() { _ = in.Close() }()
	report, err := Read(ctx, in, o)
	if err != nil {
		return nil, err
	}
	public, err := proof.PublicKey(key.Public(), o.Now)
	if err != nil {
		return nil, err
	}
	var made []Signature
	for _, n := range report.spaces {
		for _, k := range n.Keys {
			if k.ID != public.ID {
				continue
			}
			if err := proof.Usable(k, o.Now); err != nil {
				return nil, err
			}
			s, err := sign(n, key, report.Manifest, report.manifest, o.Now)
			if err != nil {
				return nil, err
			}
			made = append(made, *s)
		}
	}
	if len(made) == 0 {
		return nil, &stele.Error{Op: "sign bundle", Kind: stele.NotFound, Err: stele.Messagef("bundle.key-of-no-namespace", "no namespace in the bundle has the key {key}; 'stele key list' names the keys of a namespace", public.ID)}
	}
	return made, report.replaceTail(path, in, made)
}

// replaceTail writes the bundle again with other signatures.
func (r *Report) replaceTail(path string, in io.ReadSeeker, made []Signature) (err error) {
	all := slices.Clone(made)
	for _, s := range r.Signatures {
		if !slices.ContainsFunc(made, func(m Signature) bool { return m.file() == s.file() }) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Signature) int { return strings.Compare(a.file(), b.file()) })
	f, err := os.OpenFile(path+partSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return disk.FileError(err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(path+partSuffix, path)
		}
		if err != nil {
			err = errors.Join(disk.FileError(err), os.Remove(path+partSuffix))
		}
	}()
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.CopyN(f, in, r.tail); err != nil {
		return err
	}
	w := &writer{job: &Job{Gzip: r.gzip}, out: &outCounter{w: f}, head: r.Head, tags: r.tags}
	for i := range all {
		if err := w.putJSON(all[i].file(), &all[i]); err != nil {
			return err
		}
	}
	if err := w.finish(); err != nil {
		return err
	}
	return f.Sync()
}

// sign makes the signature of a namespace.
func sign(n *stele.Namespace, key crypto.Signer, manifest [32]byte, size uint64, now time.Time) (*Signature, error) {
	s := &Signature{Namespace: n.Prefix, Scheme: n.Scheme, Manifest: hex.EncodeToString(manifest[:]), Size: size, Date: now.UTC().Truncate(time.Second)}
	id, said, err := s.statement()
	if err != nil {
		return nil, err
	}
	made, err := proof.Sign(key, id, said)
	if err != nil {
		return nil, err
	}
	s.Key, s.JWS = made.Key, made.JWS
	return s, nil
}
