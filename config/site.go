package config

import (
	"regexp"

	"github.com/stele-id/stele"
)

var (
	lineKind      = kind{"text", textForm, orNothing(readLine)}
	colourKind    = kind{"colour", textForm, orNothing(readColour)}
	languagesKind = kind{"languages", listForm, readLanguage}
)

// maxLine is how many bytes a text of the operator on one line has.
const maxLine = 200

func readLine(_ *Setting, text string) (any, error) {
	if len(text) > maxLine || stele.CheckText("", text) != nil {
		return nil, stele.Messagef("config.not-a-line", "write at most {most} bytes of text on one line", maxLine)
	}
	return text, nil
}

var (
	colour      = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)
	languageTag = regexp.MustCompile(`^[a-zA-Z]{2,3}(-[a-zA-Z0-9]{2,8})*$`)
)

func readColour(_ *Setting, text string) (any, error) {
	if !colour.MatchString(text) {
		return nil, stele.Messagef("face.colour-invalid", `"{colour}" is not a colour; write it as in #8a3b12`, text)
	}
	return text, nil
}

func readLanguage(_ *Setting, text string) (any, error) {
	if !languageTag.MatchString(text) {
		return nil, stele.Messagef("config.not-a-language", `"{value}" is not the tag of a language; write it as in pt-BR`, text)
	}
	return text, nil
}
