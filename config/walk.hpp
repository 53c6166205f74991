// The four readers of a description: load it, dump it, write its schema, list its keys.
#pragma once

#include "config/type.hpp"

#include <string>
#include <vector>

namespace headgate::config {

class load_walk : public visitor
{
public:
    load_walk(loading& l, const node& n, const std::string& path) : l_(l), n_(n), path_(path) {}
    void only_with(const char* governing, const char* value, bool active) override;
    void report_unknown_and_missing();

protected:
    void visit(const char* name, const type& t, void* field, const about& a) override;

private:
    std::string path_of(const std::string& name) const { return path_.empty() ? name : path_ + "." + name; }

    loading& l_;
    const node& n_;
    const std::string& path_;
    struct missing_key_note
    {
        std::string name;
        std::string message;
    };
    std::vector<std::string> names_;
    std::vector<missing_key_note> missing_;
    std::string only_with_;  // says what the keys that come now belong to, when that is not given here
    bool uncertain_ = false; // the key that governs them is itself wrong
};

class dump_walk : public visitor
{
public:
    dump_walk(const dumping& d, const std::string& path) : d_(d), path_(path) {}
    void only_with(const char*, const char*, bool active) override { active_ = active; }
    json take() { return std::move(out_); }

protected:
    void visit(const char* name, const type& t, void* field, const about& a) override;

private:
    const dumping& d_;
    const std::string& path_;
    bool active_ = true;
    json out_ = json::object();
};

class schema_walk : public visitor
{
public:
    void only_with(const char* governing, const char* value, bool) override;
    json take();

protected:
    void visit(const char* name, const type& t, void* field, const about& a) override;

private:
    std::string note_;
    json properties_ = json::object();
    json required_ = json::array();
};

class key_walk : public visitor
{
public:
    key_walk(key_list& out, const std::string& path) : out_(out), path_(path) {}
    void only_with(const char* governing, const char* value, bool active) override;

protected:
    void visit(const char* name, const type& t, void* field, const about& a) override;

private:
    key_list& out_;
    const std::string& path_;
    std::string only_with_;
};

} // namespace headgate::config
