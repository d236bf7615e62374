module tidegate

go 1.25
