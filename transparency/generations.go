package transparency

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/stele-id/stele"
)

// Generations are the eras of a log, as the registry tells its readers: a log that goes on after a restore has another origin, and
// readers compare its beginning with what they knew.
type Generations struct {
	Origin string // in the last era
	Eras   []NamedEra
}

// NamedEra is an era with the origin of its checkpoints.
type NamedEra struct {
	Era
	Origin string
}

// generationsHeader is the second line, where a checkpoint has its size: neither is taken for the other.
const generationsHeader = "stele generations 1"

// maxGenerations bounds the text; a registry is restored a few times in its life.
const maxGenerations = 1 << 20

// String returns the text that is signed:
//
//	names.example.org/.log/g2-20320109T083000Z
//	stele generations 1
//	1 8f2b... 0 2031-05-02T10:00:00Z names.example.org/.log
//	2 03c1... 1041 2032-01-09T08:30:00.1Z names.example.org/.log/g2-20320109T083000Z
//
// Each line of an era has the number of the generation, its identifier, the size of the log that it began with, when it began, and the
// origin of its checkpoints. Origins of former eras are those that witnesses and proofs have.
func (g *Generations) String() string {
	b := []byte(g.Origin + "\n" + generationsHeader + "\n")
	for _, e := range g.Eras {
		b = strconv.AppendUint(b, e.Number, 10)
		b = append(append(b, ' '), e.Generation.String()...)
		b = strconv.AppendUint(append(b, ' '), e.Size, 10)
		b = e.Began.UTC().AppendFormat(append(b, ' '), time.RFC3339Nano)
		b = append(append(append(b, ' '), e.Origin...), '\n')
	}
	return string(b)
}

// OpenGenerations checks the signed list of a log's eras, and reads it. It is Invalid if none of the keys has signed it.
func OpenGenerations(text []byte, keys []PublicKey) (*Generations, error) {
	if len(text) > maxGenerations {
		return nil, badGenerations("it is too long")
	}
	n, err := openNote(text, keys)
	if err != nil {
		return nil, err
	}
	g, err := parseGenerations(n.Text)
	if err != nil {
		return nil, err
	}
	for _, s := range n.Sigs {
		for _, k := range keys {
			if !k.Cosign && isEra(g.Origin, k.Name) && (verifier{k, s.Name}).KeyHash() == s.Hash {
				return g, nil
			}
		}
	}
	return nil, &stele.Error{Op: "check generations", Kind: stele.Invalid, Err: ErrUnsigned}
}

func parseGenerations(text string) (*Generations, error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || lines[1] != generationsHeader {
		return nil, badGenerations("its second line is not " + generationsHeader)
	}
	g := &Generations{Origin: lines[0]}
	for _, line := range lines[2 : len(lines)-1] {
		fields := strings.Split(line, " ")
		if len(fields) != 5 {
			return nil, badGenerations("a line has not five parts")
		}
		var e NamedEra
		var errs [4]error
		e.Number, errs[0] = strconv.ParseUint(fields[0], 10, 64)
		e.Generation, errs[1] = stele.ParseGenerationID(fields[1])
		e.Size, errs[2] = strconv.ParseUint(fields[2], 10, 63)
		e.Began, errs[3] = time.Parse(time.RFC3339Nano, fields[3])
		e.Origin = fields[4]
		for _, err := range errs {
			if err != nil {
				return nil, badGenerations("a line has a number or a time that is not one")
			}
		}
		g.Eras = append(g.Eras, e)
	}
	if !slices.IsSortedFunc(g.Eras, func(a, b NamedEra) int { return cmp.Compare(a.Size, b.Size) }) || len(g.Eras) > stele.MaxGenerations {
		return nil, badGenerations("an era begins before the one before it, or they are too many")
	}
	if g.String() != text || g.Eras[len(g.Eras)-1].Origin != g.Origin {
		return nil, badGenerations("its lines are not in their form")
	}
	return g, nil
}

func badGenerations(why string) error {
	return &stele.Error{Op: "read generations", Kind: stele.Invalid, Err: stele.Messagef("log.generations-malformed", "this is not the list of the eras of a log: {reason}", why)}
}

// Generations returns the eras of the log under a name; nil if the log has not begun.
func (l *Log) Generations(ctx context.Context, origin string) (*Generations, error) {
	p, err := l.read(ctx)
	if err != nil || len(p.Eras) == 0 {
		return nil, err
	}
	g := &Generations{Origin: eraOrigin(origin, p.Eras)}
	for i, e := range p.Eras {
		g.Eras = append(g.Eras, NamedEra{e, eraOrigin(origin, p.Eras[:i+1])})
	}
	return g, nil
}

// SignGenerations returns the list of the log's eras as a note that its keys sign; "" if the log has not begun, or no key signs now.
func (l *Log) SignGenerations(ctx context.Context, keys *Keys) (string, error) {
	g, err := l.Generations(ctx, keys.Origin)
	if err != nil || g == nil {
		return "", err
	}
	signers := l.signers(keys, g.Origin)
	if len(signers) == 0 {
		return "", nil
	}
	text, err := note.Sign(&note.Note{Text: g.String()}, signers...)
	if err != nil {
		return "", &stele.Error{Op: "sign generations", Kind: stele.Internal, Err: err}
	}
	return string(text), nil
}

// signers returns the keys that sign now, under an origin.
func (l *Log) signers(keys *Keys, origin string) (list []note.Signer) {
	for _, k := range keys.List {
		if k.signsAt(l.o.Now()) {
			list = append(list, signer{origin, k.Private})
		}
	}
	return list
}
