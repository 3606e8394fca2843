package web

import (
	"html/template"
	"text/template/parse"
)

// Fold writes what is the same on all pages of a language into templates once: an action becomes what
// it would print if it calls t with a key and nothing else, or if it is one of the constants, which are
// functions without arguments, or shows one by prose. A constant of type template.HTML is markup. A condition that is a constant goes, too. Half of the
// time of a page went into these. Fold is called before a template is executed.
func Fold(t *template.Template, text func(key string, args ...any) string, constants map[string]any) {
	f := folding{text, constants}
	for _, each := range t.Templates() {
		if each.Tree != nil {
			f.list(each.Tree.Root)
		}
	}
}

type folding struct {
	text      func(key string, args ...any) string
	constants map[string]any
}

func (f folding) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	var kept []parse.Node
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			if text, ok := f.constant(n.Pipe); ok {
				node = &parse.TextNode{NodeType: parse.NodeText, Pos: n.Pos, Text: []byte(text)}
			}
		case *parse.IfNode:
			f.list(n.List)
			f.list(n.ElseList)
			if text, ok := f.constant(n.Pipe); ok {
				if text != "" {
					kept = append(kept, n.List.Nodes...)
				} else if n.ElseList != nil {
					kept = append(kept, n.ElseList.Nodes...)
				}
				continue
			}
		case *parse.RangeNode:
			f.list(n.List)
			f.list(n.ElseList)
		case *parse.WithNode:
			f.list(n.List)
			f.list(n.ElseList)
		}
		kept = append(kept, node)
	}
	list.Nodes = kept
}

// constant returns what a pipeline prints that is the same on all pages. Quotation marks are escaped too, so
// it is right in attributes as well.
func (f folding) constant(p *parse.PipeNode) (text string, ok bool) {
	if len(p.Decl) > 0 || len(p.Cmds) != 1 {
		return "", false
	}
	args := p.Cmds[0].Args
	name, ok := args[0].(*parse.IdentifierNode)
	if !ok {
		return "", false
	}
	if len(args) == 1 {
		switch value := f.constants[name.Ident].(type) {
		case string:
			return template.HTMLEscapeString(value), true
		case template.HTML:
			return string(value), true
		}
		return "", false
	}
	if len(args) != 2 {
		return "", false
	}
	switch argument := args[1].(type) {
	case *parse.StringNode:
		if name.Ident == "t" {
			return template.HTMLEscapeString(f.text(argument.Text)), true
		}
	case *parse.IdentifierNode:
		if name.Ident == "prose" {
			value, ok := f.constants[argument.Ident].(string)
			return template.HTMLEscapeString(ShowProse(value)), ok
		}
	}
	return "", false
}
