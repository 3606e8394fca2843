// Package config reads the settings of a server: from defaults, a file in TOML, the
// environment and flags, the later of which win over the earlier. It reports all errors at
// once, with the place of each.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	gotoml "github.com/pelletier/go-toml/v2"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/terminal"
)

// maxConfigFile is the size of the largest configuration file that is read.
const maxConfigFile = 1 << 20

// Problem is an error in the configuration.
type Problem struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Variable string `json:"variable,omitempty"` // of the environment
	Key      string `json:"key,omitempty"`
	Problem  string `json:"problem"`
	Code     string `json:"code,omitempty"`    // of the problem, for programs; see [stele.Message]
	Nearest  string `json:"nearest,omitempty"` // the key that may have been meant
}

// set notes what is wrong.
func (q *Problem) set(err error) {
	q.Problem = err.Error()
	q.Code, _ = stele.CodeOf(err)
}

// problemOf returns an error as a problem of no setting in particular.
func problemOf(err error) (q Problem) {
	q.set(err)
	return q
}

// Err returns the problem, with where it is, as an error with its code.
func (q Problem) Err() error { return stele.ReceivedMessage(q.Code, q.String(), nil) }

// String says where it is, and what.
func (q Problem) String() string {
	var where []string
	switch {
	case q.File != "" && q.Line > 0:
		where = append(where, fmt.Sprintf("%s:%d", q.File, q.Line))
	case q.File != "":
		where = append(where, q.File)
	case q.Variable != "":
		where = append(where, q.Variable)
	}
	if q.Key != "" && q.Variable == "" {
		where = append(where, q.Key)
	}
	return terminal.Printable(strings.Join(append(where, q.Problem), ": "))
}

// layer is one source of settings. Later layers win over earlier ones.
type layer struct {
	name   string                    // of the source, for people
	values map[string]any            // by the name of the setting, not yet read
	blame  func(name string) Problem // where a value stands
}

// Config is the result of all sources.
type Config struct {
	Values
	Problems []Problem
	Warnings []Problem

	values map[string]any     // by the name of the setting
	origin map[string]string  // of each value: which source
	places map[string]Problem // of each value: where it stands there
}

// Load reads all sources: defaults, the file if it is named, the
// environment, and flags that were given: by the name of a setting a text, or the texts of
// a list. Errors are among its problems.
func Load(file string, environ []string, flags map[string]any) *Config {
	c := &Config{origin: map[string]string{}, places: map[string]Problem{}}
	layers := []layer{defaultLayer()}
	if file != "" {
		layers = append(layers, c.fileLayer(file))
	}
	layers = append(layers, c.environmentLayer(environ))
	if flags != nil {
		layers = append(layers, flagLayer(flags))
	}
	k := koanf.New(".")
	for _, l := range layers {
		// A map that was read already can't fail to load.
		if err := k.Load(confmap.Provider(c.read(l), ""), nil); err != nil {
			c.Problems = append(c.Problems, problemOf(err))
		}
	}
	c.values = k.Raw()
	if err := k.Unmarshal("", &c.Values); err != nil {
		c.Problems = append(c.Problems, problemOf(err))
	}
	c.choosePlace()
	c.checkTogether()
	slices.SortStableFunc(c.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(b.File, a.File), cmp.Compare(a.Line, b.Line))
	})
	return c
}

// read reads the values of a layer. It leaves out wrong values and reports them.
func (c *Config) read(l layer) map[string]any {
	read := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(l.values)) {
		value, err := Find(name).Read(l.values[name])
		for _, err := range each(err) {
			place := name
			if entry, ok := errors.AsType[*entryError](err); ok {
				place += "." + entry.name
			}
			q := l.blame(place)
			q.set(err)
			c.Problems = append(c.Problems, q)
		}
		c.origin[name], c.places[name] = l.name, l.blame(name)
		if err == nil {
			read[name] = value
		}
	}
	return read
}

// each returns the errors that were joined to one.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

func defaultLayer() layer {
	l := layer{name: Default, values: map[string]any{}, blame: func(name string) Problem {
		return Problem{Key: name}
	}}
	for _, s := range settings {
		l.values[s.Name] = s.Usual
	}
	return l
}

// Default is the name of the source of values that no other source gives.
const Default = "default"

// Flag is the name of the source of values that flags give.
const Flag = "flag"

// Origin returns the source of a setting's value: Default, a file's name, "environment" or
// Flag.
func (c *Config) Origin(name string) string { return c.origin[name] }

// Value returns the value of a setting, as its field in Values has it.
func (c *Config) Value(name string) any { return c.values[name] }

// flagLayer returns the settings among the flags that were given.
func flagLayer(flags map[string]any) layer {
	return layer{name: Flag, values: flags, blame: func(name string) Problem { return Problem{Key: "--" + name} }}
}

// environmentLayer returns the settings in the environment. A variable whose name is
// similar to one of ours is only a warning: it may be another program's, such as those
// that Kubernetes sets for each service.
func (c *Config) environmentLayer(environ []string) layer {
	l := layer{name: "environment", blame: func(name string) Problem {
		name, _, _ = strings.Cut(name, ".")
		return Problem{Key: name, Variable: Find(name).Variable()}
	}}
	provider := env.Provider("", env.Opt{
		Prefix:      environmentPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(variable, value string) (string, any) {
			name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, environmentPrefix), "_", "-"))
			if s := Find(name); s != nil && s.Variable() == variable {
				return name, value
			}
			if near := nearestSetting(name); near != "" && !slices.Contains(otherVariables, variable) {
				near = Find(near).Variable()
				c.Warnings = append(c.Warnings, Problem{Variable: variable, Nearest: near,
					Problem: "no setting has this name; did you mean " + near + "?"})
			}
			return "", nil
		},
	})
	values, err := provider.Read()
	if err != nil {
		c.Problems = append(c.Problems, problemOf(err))
	}
	l.values = values
	return l
}

// otherVariables are variables of ours that are not settings of the server.
var otherVariables = []string{"STELE_CONFIG", "STELE_SERVER", "STELE_TOKEN", "STELE_TOKEN_FILE", "STELE_CA"}

// fileLayer returns the settings in a file, and reports unknown keys.
func (c *Config) fileLayer(file string) layer {
	l := layer{name: file, values: map[string]any{}}
	k := koanf.New(".")
	text, err := readConfigFile(file)
	if err == nil {
		err = k.Load(rawbytes.Provider(text), toml.Parser())
	}
	if err != nil {
		q := Problem{File: file, Problem: err.Error()}
		if why, ok := strings.CutPrefix(q.Problem, "toml: "); ok {
			q.set(stele.Messagef("config.not-toml", "this is not TOML, where texts stand in quotation marks and keys only once: {why}", why))
		}
		if syntax, ok := errors.AsType[*gotoml.DecodeError](err); ok {
			q.Line, _ = syntax.Position()
		}
		c.Problems = append(c.Problems, q)
		return l
	}
	lines := keyLines(text)
	l.blame = func(name string) Problem { return Problem{File: file, Line: lines[name], Key: name} }
	for name, value := range k.Raw() {
		if Find(name) != nil {
			l.values[name] = value
			continue
		}
		q := l.blame(name)
		q.set(stele.Messagef("config.setting-unknown", "no setting has this name; 'stele config list' has them all"))
		if q.Nearest = nearestSetting(name); q.Nearest != "" {
			q.set(stele.Messagef("config.setting-mistyped", "no setting has this name; did you mean {setting}?", q.Nearest))
		}
		c.Problems = append(c.Problems, q)
	}
	return l
}

// readConfigFile returns what is in a configuration file.
func readConfigFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, errors.Unwrap(err)
	case !info.Mode().IsRegular():
		return nil, stele.Messagef("config.not-a-file", "this is not a file")
	case info.Size() > maxConfigFile:
		return nil, stele.Messagef("config.file-too-large", "the file has {bytes} bytes, and a configuration at most {limit}", info.Size(), maxConfigFile)
	}
	return os.ReadFile(file)
}

// keyLines returns the lines at which the keys of a TOML text stand, those in
// tables too. A decoder that knows no key reports each, with its
// place; one that knows a table reports the keys in it.
func keyLines(text []byte) map[string]int {
	lines := map[string]int{}
	for _, known := range []any{&struct{}{}, &struct {
		Global       struct{} `toml:"global"`
		Issuer       struct{} `toml:"issuer"`
		IssuerLabel  struct{} `toml:"issuer-label"`
		IssuerClient struct{} `toml:"issuer-client"`
		IssuerSecret struct{} `toml:"issuer-secret-file"`
		IssuerScopes struct{} `toml:"issuer-scopes"`
		IssuerClaim  struct{} `toml:"issuer-groups-claim"`
		IssuerEnter  struct{} `toml:"issuer-enter"`
		Escrow       struct{} `toml:"escrow"`
		EscrowNames  struct{} `toml:"escrow-prefixes"`
		EscrowEvery  struct{} `toml:"escrow-every"`
		EscrowKeys   struct{} `toml:"escrow-credentials"`
	}{}} {
		err := gotoml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(known)
		strict, ok := errors.AsType[*gotoml.StrictMissingError](err)
		if !ok {
			continue
		}
		for _, e := range strict.Errors {
			line, _ := e.Position()
			for i := range e.Key() {
				if name := strings.Join(e.Key()[:i+1], "."); lines[name] == 0 {
					lines[name] = line
				}
			}
		}
	}
	return lines
}
