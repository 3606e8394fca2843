package foreign

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// Limits of a folder that a user sends. Those of a folder on the disk are larger; see maxTreeFiles.
const (
	MaxSentFiles = 20_000 // that it has, also those that are not read

	maxSentText  = 64 << 20  // bytes of all files that are read
	maxSentAll   = 256 << 20 // bytes of all files, decompressed, that have to be passed over in an archive as well
	maxSentDepth = 32        // folders in each other
	maxSentPath  = 1000      // bytes of a path
	sentExamples = 5         // files left out that are named
)

// Sent is a folder that a user sent, as one archive.
type Sent struct {
	System   string   // whose files it has
	Archive  []byte   // a tar archive, compressed with gzip
	Root     string   // the folder in it after which names begin; "" if all of a path is a part of its names
	Files    int      // in the archive
	LeftOut  int      // files that the system does not read
	Examples []string // some of these
	Links    int      // symbolic links and other entries that are not files, which are not followed
}

// Packer makes a [Sent] of files that come one after the other, as a browser sends a folder, and of the files in zip and tar
// archives among them. It follows no links, and accepts no path that leads out of the folder.
type Packer struct {
	most  int // bytes of an archive
	packs []*sentPack
	host  string // that names of the system begin with

	seen, links  int
	text, all    int // bytes that may still come
	paths        map[string]bool
	loose, whole topFolder // of the files that come by themselves, and of those in archives
	archives     int
}

// sentPack is the archive that is made for a system.
type sentPack struct {
	system   *System
	files    int
	marks    int // files that no other system has
	examples []string

	archive bytes.Buffer
	packed  *gzip.Writer
	tar     *tar.Writer
}

// topFolder is the folder that all files are in.
type topFolder struct {
	name  string
	mixed bool // there is none
	any   bool
}

func (f *topFolder) add(name string) {
	top, _, inside := strings.Cut(name, "/")
	if f.mixed = f.mixed || !inside || f.any && f.name != top; !f.any {
		f.name, f.any = top, true
	}
}

// IsTree reports whether the files of a system are read together, as a folder.
func IsTree(system string) bool {
	s := SystemNamed(system)
	return s != nil && s.Tree != nil
}

// NewPacker returns a packer for files of a system; for Auto the files say whose they are. Prefix is what names begin with, if
// that is not what is usual for the system. The archive has at most so many bytes.
func NewPacker(system, prefix string, most int) *Packer {
	p := &Packer{most: most, text: maxSentText, all: maxSentAll, paths: make(map[string]bool)}
	for _, s := range Systems() {
		if s.Tree == nil || system != string(Auto) && s.Name != system {
			continue
		}
		pack := &sentPack{system: s}
		pack.packed = gzip.NewWriter(&pack.archive)
		pack.tar = tar.NewWriter(pack.packed)
		p.packs = append(p.packs, pack)
	}
	if prefix == "" {
		prefix = w3idBase
	}
	_, after, _ := strings.Cut(prefix, "://")
	p.host, _, _ = strings.Cut(after, "/")
	return p
}

// LooksLikeTree reports whether a file, by its name and its beginning, is one that a Packer of Auto takes: it stands in a folder, is
// compressed, or has a name that only files of such a system have.
func LooksLikeTree(name string, head []byte) bool {
	base := path.Base(name)
	return strings.Contains(name, "/") || bytes.HasPrefix(head, []byte(zipMark)) || bytes.HasPrefix(head, []byte(gzipMark)) || base == ".htaccess" || isOBOFile(base)
}

const (
	zipMark  = "PK\x03\x04"
	gzipMark = "\x1f\x8b"
)

// rawReader tells errors of the sender from those of an archive that was sent whole.
type rawReader struct {
	in  io.Reader
	err error
}

func (r *rawReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// Add takes a file, by its path in the folder. If reading it fails, Add returns that error as it is.
func (p *Packer) Add(name string, in io.Reader) error {
	raw := &rawReader{in: in}
	text := bufio.NewReader(raw)
	head, _ := text.Peek(recognised)
	var err error
	switch {
	case bytes.HasPrefix(head, []byte(zipMark)):
		p.archives++
		err = p.addZip(name, text)
	case bytes.HasPrefix(head, []byte(gzipMark)):
		p.archives++
		err = p.addCompressed(name, text)
	case isTar(head):
		p.archives++
		err = p.addTar(name, text)
	default:
		name = name[strings.LastIndexByte(name, '\\')+1:] // some browsers send a path of their machine
		p.loose.add(name)
		err = p.add(name, &bounded{in: text, left: &p.all})
	}
	if raw.err != nil {
		return raw.err
	}
	return err
}

// addCompressed takes a tar archive that is compressed with gzip.
func (p *Packer) addCompressed(name string, in io.Reader) error {
	z, err := gzip.NewReader(in)
	if err != nil {
		return damagedTar(name, err)
	}
	text := bufio.NewReader(z)
	if head, _ := text.Peek(recognised); !isTar(head) {
		return failf(stele.Invalid, "import.sent-not-an-archive", "{file} is compressed, and is not a tar archive; send the file as it is, or the folder as .zip or .tar.gz", name)
	}
	return p.addTar(name, text)
}

// addTar takes the files of a tar archive.
func (p *Packer) addTar(name string, in io.Reader) error {
	archive := tar.NewReader(&bounded{in: in, left: &p.all})
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return damagedTar(name, err)
		}
		switch h.Typeflag {
		case tar.TypeReg:
			inside := strings.TrimPrefix(h.Name, "./")
			p.whole.add(inside)
			if err := p.add(inside, archive); err != nil {
				return damagedTar(name, err)
			}
		case tar.TypeDir, tar.TypeXGlobalHeader:
		default:
			if err := p.countLink(); err != nil {
				return err
			}
		}
	}
}

// addZip takes the files of a zip archive, which is read as a whole, because its directory is at its end.
func (p *Packer) addZip(name string, in io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(in, int64(p.most)+1))
	switch {
	case err != nil:
		return err
	case len(text) > p.most:
		return failf(stele.Invalid, "import.sent-archive-too-large", "{file} has more than {most} bytes; divide it, or import the folder with 'stele import'", name, p.most)
	case bytes.Count(text, []byte("PK\x01\x02")) > MaxSentFiles: // the entries of the directory, which is read as a whole
		return p.tooMany()
	}
	archive, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return failf(stele.Invalid, "import.sent-zip-damaged", "{file} is not a whole zip archive: {cause}", name, err)
	}
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		if f.Mode()&^fs.ModePerm != 0 {
			if err := p.countLink(); err != nil {
				return err
			}
			continue
		}
		p.whole.add(f.Name)
		if err := p.addMember(name, f); err != nil {
			return err
		}
	}
	return nil
}

func (p *Packer) addMember(archive string, f *zip.File) error {
	if !p.wants(f.Name) { // it is not even decompressed
		return p.add(f.Name, nil)
	}
	in, err := f.Open()
	if err == nil {
		err = errors.Join(p.add(f.Name, &bounded{in: in, left: &p.all}), in.Close())
	}
	var told *stele.Error
	if err == nil || errors.As(err, &told) {
		return err
	}
	return failf(stele.Invalid, "import.sent-zip-damaged", "{file} is not a whole zip archive: {cause}", archive, err)
}

// damagedTar says that a tar archive can't be read, unless the reader has said why.
func damagedTar(name string, err error) error {
	if _, told := errors.AsType[*stele.Error](err); told {
		return err
	}
	return failf(stele.Invalid, "import.archive-damaged", "{file} is not a whole tar archive: {cause}", name, err)
}

// bounded bounds how much is read of archives, decompressed.
type bounded struct {
	in   io.Reader
	left *int
}

func (b *bounded) Read(to []byte) (int, error) {
	n, err := b.in.Read(to)
	if *b.left -= n; *b.left < 0 {
		return 0, failf(stele.Invalid, "import.sent-too-much", "the files have more than {most} bytes, decompressed; send a part of the folder, or import it with 'stele import'", maxSentAll)
	}
	return n, err
}

func (p *Packer) tooMany() error {
	return failf(stele.Invalid, "import.sent-too-many-files", "there are more than {most} files; send a part of the folder, or import it with 'stele import'", MaxSentFiles)
}

func (p *Packer) countLink() error {
	if p.links++; p.links+p.seen > MaxSentFiles {
		return p.tooMany()
	}
	return nil
}

// wants reports whether a system reads a file. Archives of macOS have a file with attributes beside each one, and clones have a
// folder of Git.
func (p *Packer) wants(name string) bool {
	for _, pack := range p.packs {
		if pack.wants(name) {
			return true
		}
	}
	return false
}

func (k *sentPack) wants(name string) bool {
	base := path.Base(name)
	return k.system.Tree(base) && !strings.HasPrefix(base, "._") && !isGit(name)
}

func isGit(name string) bool {
	return strings.HasPrefix(name, ".git/") || strings.Contains(name, "/.git/")
}

// add takes a file that is not an archive. The reader is nil if it has not to be read when no system wants it.
func (p *Packer) add(name string, in io.Reader) error {
	if p.seen++; p.links+p.seen > MaxSentFiles {
		return p.tooMany()
	}
	if !p.wants(name) {
		for _, k := range p.packs {
			k.leaveOut(name)
		}
		if in == nil {
			return nil
		}
		_, err := io.Copy(io.Discard, in)
		return err
	}
	if err := checkSentPath(name); err != nil {
		return err
	}
	if p.paths[name] {
		return failf(stele.Invalid, "import.sent-twice", "{file} comes twice; send each file once", name)
	}
	p.paths[name] = true
	text, err := io.ReadAll(io.LimitReader(in, int64(min(maxTreeFile, p.text))+1))
	if err != nil {
		return err
	}
	if p.text -= len(text); len(text) > maxTreeFile || p.text < 0 {
		return failf(stele.Invalid, "import.tree-too-large", "{file} is too large: a file has {most} bytes at most, and all of them {all}", name, maxTreeFile, maxSentText)
	}
	for _, k := range p.packs {
		if !k.wants(name) {
			k.leaveOut(name)
			continue
		}
		if err := k.add(name, text); err != nil {
			return err
		}
		if k.archive.Len() > p.most {
			return failf(stele.Invalid, "import.sent-too-large", "the files of the folder have more than {most} bytes, compressed; send a part of the folder, or import it with 'stele import'", p.most)
		}
	}
	return nil
}

func (k *sentPack) leaveOut(name string) {
	if len(k.examples) < sentExamples && !isGit(name) {
		k.examples = append(k.examples, cutText(name, 200))
	}
}

func (k *sentPack) add(name string, text []byte) error {
	if k.files++; !isW3IDFile(path.Base(name)) || path.Base(name) == ".htaccess" {
		k.marks++
	}
	if err := k.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text)), Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := k.tar.Write(text)
	return err
}

// checkSentPath makes sure that a path stays in the folder, and that messages can name it.
func checkSentPath(name string) error {
	if len(name) <= maxSentPath && utf8.ValidString(name) && path.Clean("/"+name) == "/"+name && strings.Count(name, "/") <= maxSentDepth &&
		!strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }) {
		return nil
	}
	return failf(stele.Invalid, "import.sent-path", "{file} has a path that is not accepted: it leads out of the folder, is longer than {most} bytes, is deeper than {depth} folders, or has a backslash or a control character", cutText(name, 200), maxSentPath, maxSentDepth)
}

// End returns what was sent. Of several systems it is the one that has files which no other one has.
func (p *Packer) End() (*Sent, error) {
	k := p.packs[0]
	for _, other := range p.packs[1:] {
		if k.marks == 0 && other.marks > 0 {
			k = other
		}
	}
	if k.files == 0 {
		return nil, failf(stele.Invalid, "import.sent-nothing", "none of the {count} files is one of {system}; w3id.org has .htaccess and README.md, and the OBO Foundry .yml", p.seen, k.system.Title)
	}
	if err := errors.Join(k.tar.Close(), k.packed.Close()); err != nil {
		return nil, err
	}
	if k.archive.Len() > p.most {
		return nil, failf(stele.Invalid, "import.sent-too-large", "the files of the folder have more than {most} bytes, compressed; send a part of the folder, or import it with 'stele import'", p.most)
	}
	return &Sent{System: k.system.Name, Archive: k.archive.Bytes(), Root: p.root(k.system), Files: k.files, LeftOut: p.seen - k.files, Examples: k.examples, Links: p.links}, nil
}

// root returns the folder after which names begin. A browser sends the name of the folder that was chosen before each path; the command
// leaves it out, too. An archive has such a folder if it is one of the whole of a site, as GitHub makes it, which is called w3id.org-master.
// Other archives may be of one folder of a site, whose name is a part of its names.
func (p *Packer) root(s *System) string {
	switch {
	case s.Loose:
	case p.archives == 0 && p.loose.any && !p.loose.mixed:
		return p.loose.name
	case p.archives == 1 && !p.loose.any && p.whole.any && !p.whole.mixed && (p.whole.name == p.host || strings.HasPrefix(p.whole.name, p.host+"-")):
		return p.whole.name
	}
	return ""
}
