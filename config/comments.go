package config

import (
	_ "embed"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"sync"
)

// modelSource is the file with the structs: the comments of its fields are the
// texts of the reference and of the JSON Schema, so they exist once.
//
//go:embed model.go
var modelSource string

// comments returns the comment of each field of model.go as one line, by Type.Field.
var comments = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	file, err := parser.ParseFile(token.NewFileSet(), "model.go", modelSource, parser.ParseComments)
	if err != nil {
		return out // it was compiled, so it parses; a test counts the comments
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range st.Fields.List {
			for _, name := range f.Names {
				out[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
			}
		}
		return true
	})
	return out
})

// doc returns the text of a key.
func (k *key) doc() string { return comments()[k.goName] }
