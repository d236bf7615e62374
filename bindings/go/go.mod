module tidegate

go 1.24
